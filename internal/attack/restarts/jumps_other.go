//go:build linux && !amd64

package restarts

const clockJumps = false

func installClock() {}

func setAhead(int64) {}
