"""The parts of ``bench/host.py``: problems, engines that solve them, processes that measure, what comes out."""
