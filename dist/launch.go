package dist

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/loris-ml/loris/internal/ir"
)

// Launch is what a launcher tells a process of the job.
type Launch struct {
	Launcher  string // for messages
	Rank      int
	Size      int
	LocalRank int // among the ranks of this machine; -1 if it is not told
	// Address is host:port of rank 0 where the launcher has no way of its own to bring processes
	// together, otherwise empty. Token is a secret of the job, by which processes know each other.
	Address, Token string
	// Limit is that of WithLimit.
	Limit time.Duration
}

// Starter starts this process's engine, see Register.
type Starter func(ctx context.Context, l Launch) (Engine, error)

var starter struct {
	sync.Mutex
	start  Starter
	engine Engine // that Init started
}

// Register makes Init start its engines with a function; the last one wins. Packages of engines call it
// when they are imported.
func Register(start Starter) {
	starter.Lock()
	defer starter.Unlock()
	starter.start = start
}

// Init returns the group of all processes that a launcher has started with this one: mpiexec of MPICH,
// Intel MPI or Open MPI, srun, torchrun, Kubeflow's trainer, or whatever sets RANK and WORLD_SIZE. In a
// process without a launcher it is a group of one. It blocks until all have called it. ctx bounds the life
// of the group. Several ranks need an engine: import dist/mpi for its effect.
//
// LORIS_TRACE is the file of WithTrace, where that is not given.
func Init(ctx context.Context, opts ...Option) (*Group, error) {
	opts = append([]Option{WithTrace(os.Getenv("LORIS_TRACE"))}, opts...)
	l, err := launched(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if l.Size == 1 {
		return New(ctx, alone{}, opts...)
	}
	starter.Lock()
	start := starter.start
	starter.Unlock()
	if start == nil {
		return nil, fmt.Errorf("dist: %s has started %d ranks, and this program has no engine for them: import _ \"github.com/loris-ml/loris/dist/mpi\"", l.Launcher, l.Size)
	}
	w, err := newWorld(l.Size, opts)
	if err != nil {
		return nil, err
	}
	l.Limit = w.limit
	e, err := start(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("dist: rank %d of %d, started by %s: %w", l.Rank, l.Size, l.Launcher, err)
	}
	starter.Lock()
	starter.engine = e
	starter.Unlock()
	return w.begin(ctx, e)
}

// ExitRestart is the status with which a program ends that has given up because of another rank and is to
// be started again: that of temporary failures in sysexits.
const ExitRestart = 75

// Exit ends the process with a status, as the engine that Init started needs it: mpiexec of MPICH takes a
// process that ends in another way, also by returning from main, for one that failed. Deferred calls do
// not run.
func Exit(status int) {
	starter.Lock()
	e, ok := starter.engine.(interface{ Exit(status int) })
	starter.Unlock()
	if ok {
		e.Exit(status)
	}
	os.Exit(status)
}

// launchers are the variables by which launchers tell the rank, the size and the rank on the machine, in
// the order in which they are looked for: torchrun may run within a job of Slurm, mpiexec within both.
var launchers = []struct {
	name, rank, size, local string
	host, port              string // where rank 0 listens, of those that bring nobody together; host:port without port
}{
	{"mpiexec of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "", ""},
	{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "", ""},
	{"RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"},
	{"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", ""},
	{"Kubeflow", "JOB_COMPLETION_INDEX", "PET_NNODES", "", "PET_MASTER_ADDR", "PET_MASTER_PORT"},
	{"Kubeflow's JAX runtime", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "", "JAX_COORDINATOR_ADDRESS", ""},
}

// launched reads the environment. No launcher is one rank.
func launched(env func(string) (string, bool)) (Launch, error) {
	for _, x := range launchers {
		_, ranked := env(x.rank)
		if _, sized := env(x.size); !ranked || !sized {
			continue
		}
		l := Launch{Launcher: x.name, LocalRank: -1}
		for _, v := range []struct {
			name string
			to   *int
			low  int
		}{{x.size, &l.Size, 1}, {x.rank, &l.Rank, 0}, {x.local, &l.LocalRank, 0}} {
			text, ok := env(v.name)
			if !ok {
				continue
			}
			n, err := strconv.Atoi(text)
			if err != nil || n < v.low {
				return l, fmt.Errorf("dist: %w: %s is %q", ir.ErrArg, v.name, text)
			}
			*v.to = n
		}
		if l.Rank >= l.Size {
			return l, fmt.Errorf("dist: %w: %s is %d of %d ranks", ir.ErrArg, x.rank, l.Rank, l.Size)
		}
		if x.host == "" || l.Size == 1 {
			return l, nil
		}
		return l, l.rendezvous(env, x.host, x.port)
	}
	return Launch{Launcher: "nobody", Size: 1, LocalRank: -1}, nil
}

// rendezvous reads where rank 0 listens and the token. The port of the launcher is its own, so that the
// next one is taken.
func (l *Launch) rendezvous(env func(string) (string, bool), host, port string) error {
	at, _ := env(host)
	if at == "" {
		return fmt.Errorf("dist: %w: %d ranks and no %s, the host of rank 0", ir.ErrArg, l.Size, host)
	}
	own, _ := env("LORIS_PORT")
	text, _ := env(port)
	if port == "" {
		var err error
		if at, text, err = net.SplitHostPort(at); err != nil {
			return fmt.Errorf("dist: %w: %s: %w", ir.ErrArg, host, err)
		}
		port = host
	}
	if own == "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("dist: %w: neither LORIS_PORT nor %s is a port", ir.ErrArg, port)
		}
		own = strconv.Itoa(n + 1)
	}
	l.Address = net.JoinHostPort(at, own)
	l.Token, _ = env("LORIS_TOKEN")
	if ip := net.ParseIP(at); l.Token == "" && at != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("dist: %w: rank 0 would listen at %s for whoever comes: set LORIS_TOKEN to a secret of the job", ir.ErrArg, l.Address)
	}
	return nil
}

// alone is the engine of one rank.
type alone struct{}

func (alone) Rank() int { return 0 }
func (alone) Size() int { return 1 }

func (alone) AllGather(ctx context.Context, out, in []byte) error {
	copy(out, in)
	return ctx.Err()
}

func (e alone) AllToAll(ctx context.Context, out, in []byte) error { return e.AllGather(ctx, out, in) }

func (alone) Broadcast(ctx context.Context, _ []byte, _ int) error { return ctx.Err() }

func (alone) Send(context.Context, []byte, int, int) error { return errAlone }
func (alone) Recv(context.Context, []byte, int, int) error { return errAlone }

var errAlone = fmt.Errorf("%w: there is no other rank", ir.ErrArg)

func (e alone) Split(ctx context.Context, _, _ int) (Engine, error) { return e, ctx.Err() }

func (alone) Abort(error)                     {}
func (alone) Failed() error                   { return nil }
func (alone) Status() string                  { return "" }
func (alone) Close(ctx context.Context) error { return nil }
