package cpu

// Guard makes a backend's buffers end where memory does.
func Guard(b *Backend) *Backend {
	b.mem.Guard()
	return b
}
