package dist

import (
	"errors"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// TestLaunched reads the environments of launchers.
func TestLaunched(t *testing.T) {
	for name, x := range map[string]struct {
		env  string
		want Launch
		err  string
	}{
		"none":     {"", Launch{Launcher: "nobody", Size: 1, LocalRank: -1}, ""},
		"Open MPI": {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1", Launch{Launcher: "mpiexec of Open MPI", Rank: 2, Size: 4, LocalRank: 1}, ""},
		"MPICH":    {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1", Launch{Launcher: "mpiexec", Rank: 1, Size: 2, LocalRank: 1}, ""},
		"torchrun": {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500", Launch{Launcher: "RANK and WORLD_SIZE", Rank: 1, Size: 2, LocalRank: 1, Address: "127.0.0.1:29501"}, ""},
		"token":    {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=node0 LORIS_PORT=7 LORIS_TOKEN=x", Launch{Launcher: "RANK and WORLD_SIZE", Rank: 1, Size: 2, LocalRank: -1, Address: "node0:7", Token: "x"}, ""},
		"Slurm":    {"SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_LOCALID=0", Launch{Launcher: "Slurm", Rank: 3, Size: 4}, ""},
		"Kubeflow": {"JOB_COMPLETION_INDEX=1 PET_NNODES=2 PET_MASTER_ADDR=job-0 PET_MASTER_PORT=1 LORIS_TOKEN=x", Launch{Launcher: "Kubeflow", Rank: 1, Size: 2, LocalRank: -1, Address: "job-0:2", Token: "x"}, ""},
		"JAX":      {"JOB_COMPLETION_INDEX=1 JAX_PROCESS_ID=1 JAX_NUM_PROCESSES=2 JAX_COORDINATOR_ADDRESS=job-node-0-0.job:29500 LORIS_TOKEN=x", Launch{Launcher: "Kubeflow's JAX runtime", Rank: 1, Size: 2, LocalRank: -1, Address: "job-node-0-0.job:29501", Token: "x"}, ""},
		"no JAX":   {"JAX_PROCESS_ID=1 JAX_NUM_PROCESSES=2 JAX_COORDINATOR_ADDRESS=job-node-0-0", Launch{}, "JAX_COORDINATOR_ADDRESS"},
		"JobSet":   {"JOB_COMPLETION_INDEX=1 RANK=1 WORLD_SIZE=2 MASTER_ADDR=job-workers-0-0.job MASTER_PORT=3389 LORIS_TOKEN=x", Launch{Launcher: "RANK and WORLD_SIZE", Rank: 1, Size: 2, LocalRank: -1, Address: "job-workers-0-0.job:3390", Token: "x"}, ""},
		"Ray":      {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 NODE_RANK=1 MASTER_ADDR=10.0.0.1 MASTER_PORT=40001 LORIS_TOKEN=x", Launch{Launcher: "RANK and WORLD_SIZE", Rank: 1, Size: 2, Address: "10.0.0.1:40002", Token: "x"}, ""},
		"stranger": {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=1", Launch{}, "LORIS_TOKEN"},
		"no host":  {"RANK=1 WORLD_SIZE=2", Launch{}, "MASTER_ADDR"},
		"no port":  {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=localhost", Launch{}, "MASTER_PORT"},
		"outside":  {"PMI_RANK=2 PMI_SIZE=2", Launch{}, "PMI_RANK"},
		"no size":  {"PMI_RANK=0 PMI_SIZE=many", Launch{}, "PMI_SIZE"},
	} {
		env := map[string]string{}
		for _, w := range strings.Fields(x.env) {
			k, v, _ := strings.Cut(w, "=")
			env[k] = v
		}
		got, err := launched(func(name string) (string, bool) {
			v, ok := env[name]
			return v, ok
		})
		switch {
		case x.err == "" && (err != nil || got != x.want):
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, x.want)
		case x.err != "" && (!errors.Is(err, ir.ErrArg) || !strings.Contains(err.Error(), x.err)):
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// Several ranks without an engine are an error that says what to import.
func TestInitWithoutEngine(t *testing.T) {
	for k, v := range map[string]string{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"} {
		t.Setenv(k, v)
	}
	if _, err := Init(t.Context()); err == nil || !strings.Contains(err.Error(), "dist/mpi") {
		t.Errorf("the error is %v", err)
	}
}

// A process without a launcher is a group of one.
func TestInitAlone(t *testing.T) {
	g, err := Init(t.Context(), WithShards(4))
	if err != nil {
		t.Fatal(err)
	}
	if first, n, all := g.Shards(); g.Size() != 1 || g.Rank() != 0 || first != 0 || n != 4 || all != 4 {
		t.Errorf("rank %d of %d has %d of %d shards", g.Rank(), g.Size(), n, all)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
