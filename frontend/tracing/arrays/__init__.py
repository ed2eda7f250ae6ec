"""Arrays as the traced function holds them: tracers' memory, buffers, views, masks, variables."""
