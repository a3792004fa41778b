"""What must hold, room by room; `interop/` has other people's clients."""
