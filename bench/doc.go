// Package bench has the workloads that Loris is measured by. The figures are
// reported by go test -bench . ./bench/...; comparisons with peers are commands
// in folders of their own that print both sides.
package bench
