//go:build linux && cgo

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompiledModelOnRanks runs packages that PyTorch compiled for two ranks on those of an MPI, and
// compares with what PyTorch computes.
func TestCompiledModelOnRanks(t *testing.T) {
	mpich, openmpi := os.Getenv("LORIS_TEST_MPICH"), os.Getenv("LORIS_TEST_OPENMPI")
	if mpich == "" && openmpi == "" {
		t.Skip(`there is no MPI for tests: eval "$(scripts/mpi-env.sh)" brings two`)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testdata := filepath.Join("..", "..", "..", "aoti", "testdata")
	for _, name := range []string{"collectives", "tensor_parallel"} {
		file := filepath.Join(testdata, name)
		args := []string{self, "aoti", "run", file + ".pt2", "--dist", "--in", file + ".{rank}.safetensors", "--compare", file + ".{rank}.safetensors"}
		if name == "tensor_parallel" {
			args = append(args, "--weights", file+".weights.{rank}.safetensors")
		}
		for mpi, launcher := range map[string][]string{
			mpich:   {self, "launch", "-n", "2", "--"},
			openmpi: {filepath.Join(openmpi, "bin", "mpiexec"), "-n", "2", "--oversubscribe", "--bind-to", "none"},
		} {
			if mpi == "" {
				continue
			}
			line := append(launcher, args...)
			cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
			cmd.Env = append(os.Environ(), "LORIS_TEST_COMMAND=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1")
			if mpi == mpich {
				cmd.Env = append(cmd.Env, "LORIS_MPI="+filepath.Join(mpich, "lib", "libmpi_abi.so.1"))
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || strings.Count(string(out), "out0") != 2 {
				t.Errorf("%s on %s: %v\n%s%s", name, mpi, err, out, stderr.Bytes())
			}
		}
	}
}
