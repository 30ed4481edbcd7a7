// Package guarded has memory for tests of machine code: what goes beyond its end faults, where the system
// can do that, which is Linux. Elsewhere it is memory as any other.
package guarded
