// Package gpu has measurements that need a GPU, as benchmarks for builds with
// the tag cuda, and run.sh, which runs everything there is to run on a machine
// with a GPU.
package gpu
