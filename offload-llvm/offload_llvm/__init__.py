"""What offload compiles with: the extension ``_native`` and AMD's device libraries. Import offload, not this."""
