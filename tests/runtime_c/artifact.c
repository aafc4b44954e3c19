/* artifact.c: what makes a library with the static runtime inside an artifact: an image container of its own.
 */
__attribute__((visibility("hidden"))) const unsigned char offload_images_begin[8] = {1};
extern const unsigned char offload_images_end[] __attribute__((visibility("hidden")));
__asm__(".hidden offload_images_end\n.globl offload_images_end\n.set offload_images_end, "
        "offload_images_begin + 8\n");
