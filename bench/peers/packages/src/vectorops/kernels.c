/* kernels.c: saxpy and scale over buffers of 32-bit floats, as an extension module of CPython. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *saxpy(PyObject *self, PyObject *arguments) {
  float a;
  Py_buffer x, y;
  (void)self;
  if (!PyArg_ParseTuple(arguments, "fy*w*", &a, &x, &y))
    return NULL;
  const float *from = x.buf;
  float *to = y.buf;
  Py_ssize_t bytes = x.len < y.len ? x.len : y.len;
  for (Py_ssize_t i = 0; i < bytes / (Py_ssize_t)sizeof(float); ++i)
    to[i] += a * from[i];
  PyBuffer_Release(&x);
  PyBuffer_Release(&y);
  Py_RETURN_NONE;
}

static PyObject *scale(PyObject *self, PyObject *arguments) {
  float a;
  Py_buffer x;
  (void)self;
  if (!PyArg_ParseTuple(arguments, "fw*", &a, &x))
    return NULL;
  float *values = x.buf;
  for (Py_ssize_t i = 0; i < x.len / (Py_ssize_t)sizeof(float); ++i)
    values[i] *= a;
  PyBuffer_Release(&x);
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"saxpy", saxpy, METH_VARARGS, "y = a * x + y."},
    {"scale", scale, METH_VARARGS, "x = a * x."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "kernels", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_kernels(void) { return PyModule_Create(&module); }
