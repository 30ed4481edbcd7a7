// Package bench measures what recording, syncing and compiling cost; the last by
// the size of graphs:
//
//	go test -run - -bench FirstCompile ./bench
//
// Whole programs are in bench/workloads; the figures of both are reported by go
// test -bench . ./bench/.... Comparisons with peers are commands in folders of
// their own that print both sides: compare, ops, aoti and digits_vs_torch. The command
// profile takes a workload apart, kernel by kernel; shapes measures what new sizes cost.
package bench
