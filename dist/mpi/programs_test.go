//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/dist/internal/disttest"
	"github.com/loris-ml/loris/dist/parallel"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
)

// program is what a rank of a test runs; the test's own binary is started again by mpiexec.
type program = func(ctx context.Context, g *dist.Group, s *loris.Session) error

var programs = map[string]program{
	"collectives": disttest.Collectives, "sums": sums, "lanes": lanes, "bits": bits, "storm": storm, "signals": signals, "pipeline": pipeline, "forms": forms, "full": full,
	"shapes": func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		_, err := g.AllReduce(s.With().Ones(4+g.Rank()), dist.Sum).Float32s(ctx)
		return err
	},
	"order": func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		x := s.With().Ones(4)
		if g.Rank() == 0 {
			x = g.AllReduce(g.Broadcast(x, 0), dist.Sum)
		} else {
			x = g.Broadcast(g.AllReduce(x, dist.Sum), 0)
		}
		_, err := x.Float32s(ctx)
		return err
	},
	"one": func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		if g.Rank() == 0 {
			return nil
		}
		_, err := g.AllReduce(s.With().Ones(4), dist.Sum).Float32s(ctx)
		return err
	},
	"kill":  fault(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }),
	"stop":  fault(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }),
	"panic": fault(func() { panic("a rank panics") }),
	"exit":  fault(func() { os.Exit(0) }),
	"leftovers": func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		if _, err := g.AllReduce(s.With().Ones(1<<19), dist.Sum).Float32s(ctx); err != nil {
			return err
		}
		if err := shared(); err != nil {
			return err
		}
		fmt.Printf("rank %d shares nothing that has a name\n", g.Rank())
		if err := g.Wait(ctx); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond) // until the launcher has the line
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	},
	"sleep": fault(func() { time.Sleep(time.Minute) }),
	"slow":  fault(func() { time.Sleep(3500 * time.Millisecond) }),
}

// TestMain runs a program where a test has started this binary again.
func TestMain(m *testing.M) {
	if name := os.Getenv("LORIS_TEST_PROGRAM"); name != "" {
		main1(name)
	}
	os.Exit(m.Run())
}

// main1 is the main function of a rank. Its status is that of programs which restart.
func main1(name string) {
	ctx := context.Background()
	signal.Notify(noticed, syscall.SIGUSR1, syscall.SIGHUP)
	limit, err := time.ParseDuration(os.Getenv("LORIS_TEST_LIMIT"))
	if err != nil {
		limit = 20 * time.Second
	}
	opts := []dist.Option{dist.WithLimit(limit)}
	if name == "bits" || name == "forms" {
		opts = append(opts, dist.WithShards(4))
	}
	if os.Getenv("LORIS_TEST_LIBRARY") != "" {
		opts = append(opts, dist.WithLibrarySums())
	}
	dist.Register(func(ctx context.Context, l dist.Launch) (dist.Engine, error) {
		e, err := start(ctx, l)
		started, _ = e.(*engine)
		if os.Getenv("LORIS_TEST_FAR") != "" && started != nil {
			started.lane = nil // as ranks of several machines
		}
		return e, err
	})
	g, err := dist.Init(ctx, opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s, err := g.Session(loris.WithThreads(1), loris.WithDeterministic())
	if err == nil {
		err = programs[name](ctx, g, s)
	}
	if err == nil {
		err = g.Close(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%d: rank %d: %v\n", time.Now().UnixMilli(), g.Rank(), err)
		time.Sleep(200 * time.Millisecond) // mpiexec may end the others as soon as the first has ended
		if r := (*dist.RankError)(nil); errors.As(err, &r) {
			dist.Exit(dist.ExitRestart)
		}
		dist.Exit(2)
	}
	dist.Exit(0)
}

// shared returns an error that names the files in /dev/shm that this process has mapped. MPICH and Open MPI
// share memory by such files, or there would be none that is deleted either.
func shared() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	deleted := 0
	for line := range strings.Lines(string(maps)) {
		switch {
		case !strings.Contains(line, "/dev/shm/"):
		case strings.HasSuffix(line, " (deleted)\n"):
			deleted++
		default:
			return errors.New(line)
		}
	}
	if deleted == 0 {
		return errors.New("no file of /dev/shm is mapped")
	}
	return nil
}

// fault is a program whose last rank has a fault after some collectives.
func fault(f func()) program {
	return func(ctx context.Context, g *dist.Group, s *loris.Session) error {
		for i := range 60 {
			if i == 30 && g.Rank() == g.Size()-1 {
				fmt.Fprintf(os.Stderr, "%d: fault\n", time.Now().UnixMilli())
				f()
			}
			if _, err := g.AllReduce(s.With().Ones(1<<14), dist.Sum).Float32s(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// sums runs each collective on short and long tensors.
func sums(ctx context.Context, g *dist.Group, s *loris.Session) error {
	n, r := g.Size(), g.Rank()
	m := s.With()
	check := func(what string, x *loris.Tensor, want func(i int) float64) error {
		v, err := x.Cast(loris.F64).Float64s(ctx)
		if err != nil {
			return err
		}
		for i := range v {
			if v[i] != want(i) {
				return fmt.Errorf("%s: element %d of %d is %v, want %v", what, i, len(v), v[i], want(i))
			}
		}
		return nil
	}
	for _, size := range []int{n, 600_000 * n} {
		x := m.Arange(0, size, 1).Cast(loris.F32).Add(float64(r))
		part := size / n
		if err := errors.Join(
			check("all_reduce", g.AllReduce(x, dist.Sum), func(i int) float64 { return float64(i*n + n*(n-1)/2) }),
			check("max", g.AllReduce(x, dist.Max), func(i int) float64 { return float64(i + n - 1) }),
			check("broadcast", g.Broadcast(x, n-1), func(i int) float64 { return float64(i + n - 1) }),
			check("all_gather", g.AllGather(x.Narrow(0, 0, part), 0), func(i int) float64 { return float64(i%part + i/part) }),
			check("reduce_scatter", g.ReduceScatter(x, dist.Mean, 0), func(i int) float64 { return float64(i+r*part) + float64(n-1)/2 }),
			check("all_to_all", g.AllToAll(x, 0), func(i int) float64 { return float64(r*part + i%part + i/part) }),
		); err != nil {
			return err
		}
	}
	sub, err := g.Split(ctx, -r%2, -r)
	if err != nil {
		return err
	}
	return check("split", sub.AllReduce(m.Ones(3), dist.Sum), func(int) float64 { return float64(sub.Size()) })
}

// started is the engine of all ranks.
var started *engine

// lanes gathers messages of all lengths about those that go through shared memory at once and in pieces, in a
// group and in one that is split from it.
func lanes(ctx context.Context, g *dist.Group, s *loris.Session) error {
	half, err := started.Split(ctx, started.rank%2, 0)
	if err != nil {
		return err
	}
	for _, e := range []*engine{started, half.(*engine)} {
		if e.lane == nil {
			return errors.New("ranks of one machine share no memory")
		}
		for round := range 300 {
			lengths := []int{0, 1, 7, 8, 100, laneBytes, laneBytes + 1}
			if round%100 == 0 {
				lengths = append(lengths, slotBytes-1, slotBytes, 2*slotBytes+1)
			}
			for _, n := range lengths {
				in, out := make([]byte, n), make([]byte, n*e.size)
				for i := range in {
					in[i] = byte(round + i + 31*e.rank)
				}
				if err := e.AllGather(ctx, out, in); err != nil {
					return err
				}
				for i, got := range out {
					if want := byte(round + i%n + 31*(i/n)); got != want {
						return fmt.Errorf("%d bytes, round %d: byte %d is %d, want %d", n, round, i, got, want)
					}
				}
			}
		}
	}
	return nil
}

func pipeline(ctx context.Context, g *dist.Group, s *loris.Session) error {
	w := loris.NewVariable(s.With().Full(3.0, 500_000))
	var grad *loris.Tensor
	switch g.Rank() {
	case 0:
		grad = loris.Grad(g.Send(w.Value().Mul(5.0), 1, 7), w)[0]
	case 1:
		token := s.With().Zeros()
		h := g.Recv(token, 0, 7, loris.F32, 500_000)
		grad = loris.Grad(h.Mul(h).Sum(), token)[0]
	default:
		return nil
	}
	v, err := grad.Float32s(ctx)
	if err == nil && g.Rank() == 0 && v[499_999] != 150 {
		return fmt.Errorf("the gradient is %v", v[499_999])
	}
	return err
}

// forms divides layers and an optimiser among the ranks and holds them against whole ones.
func forms(ctx context.Context, g *dist.Group, s *loris.Session) error {
	m := s.With()
	l := parallel.NewLayers(g)
	up, down := l.Column(6, 8, nn.With(m)), l.Row(8, 6, nn.With(m))
	x := m.Arange(0, 18, 1).Cast(loris.F32).Reshape(3, 6).Sin()
	whole := x.Linear(l.Whole(up.Weight), loris.Bias(l.Whole(up.Bias))).Relu().Linear(l.Whole(down.Weight), loris.Bias(l.Whole(down.Bias)))
	far, err := down.Forward(up.Forward(x).Relu()).Sub(whole).Abs().Amax().Item(ctx)
	if err == nil && far > 1e-5 {
		err = fmt.Errorf("divided layers are off by %v", far)
	}
	if err != nil {
		return err
	}
	a, b := nn.NewLinear(5, 3, nn.With(m)), nn.NewLinear(5, 3, nn.With(m))
	a.Weight.Assign(b.Weight.Value())
	adam := func(p iter.Seq2[string, *loris.Variable]) *optim.Optimizer { return optim.NewAdam(p, 0.1) }
	parts, plain := parallel.NewOptimizer(g, a.Params(), adam), adam(b.Params())
	_, n, _ := g.Shards()
	for step := range 3 {
		err := s.Step(ctx, func() error {
			var grads [][]*loris.Tensor
			for k := range n {
				grads = append(grads, []*loris.Tensor{b.Weight.Value().Mul(float64(step + k + g.Rank())), b.Bias.Value().Add(1.0)})
			}
			parts.Step(grads...)
			plain.Step(g.Average(grads...))
			return nil
		})
		if err != nil {
			return err
		}
	}
	same, err := a.Weight.Value().Eq(b.Weight.Value()).All().Bools(ctx)
	if err == nil && !same[0] {
		return errors.New("a divided optimiser has other bits than a whole one")
	}
	return err
}

// bits trains a linear classifier with 4 shards a step and prints what the weights are.
func bits(ctx context.Context, g *dist.Group, s *loris.Session) error {
	const in, out, batch = 50, 7, 8
	m := s.With()
	w := loris.NewVariable(m.Zeros(in, out))
	first, n, all := g.Shards()
	for step := range 20 {
		err := s.Step(ctx, func() error {
			var grads [][]*loris.Tensor
			for k := range n {
				x, y := make([]float32, batch*in), make([]int64, batch)
				for i := range x {
					x[i] = float32(math.Sin(float64(((step*all+first+k)*batch*in + i) * 3)))
				}
				for i := range y {
					y[i] = int64(step*3+first+k+i) % out
				}
				loss := loris.CrossEntropy(m.FromSlice(x, batch, in).MatMul(w.Value()).Tanh(), m.FromSlice(y, batch))
				grads = append(grads, loris.Grad(loss, w))
			}
			w.Assign(w.Value().Sub(g.Average(grads...)[0]))
			return nil
		})
		if err != nil {
			return err
		}
	}
	v, err := w.Value().Float32s(ctx)
	if err == nil && g.Rank() == 0 {
		fmt.Printf("weights %x\n", sha256.Sum256(fmt.Append(nil, v)))
	}
	return err
}

// storm has the collector and preemption at work while elements move, and checks all of them.
func storm(ctx context.Context, g *dist.Group, s *loris.Session) error {
	stop := make(chan struct{})
	defer close(stop)
	for range 8 {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = make([]byte, 1<<16)
					runtime.Gosched()
				}
			}
		}()
	}
	debug.SetGCPercent(5)
	for i := range 20 {
		x := s.With().Arange(0, 100_000, 1).Cast(loris.F32).Add(float64(i))
		v, err := g.AllToAll(g.AllReduce(x, dist.Sum), 0).Float32s(ctx)
		if err != nil {
			return err
		}
		part := len(v) / g.Size()
		for k, got := range v {
			if want := float32((g.Rank()*part + k%part + i) * g.Size()); got != want {
				return fmt.Errorf("round %d: element %d is %v, want %v", i, k, got, want)
			}
		}
	}
	return nil
}

// noticed gets SIGUSR1, which Slurm sends before it ends a job, and SIGHUP, from before MPI starts.
var noticed = make(chan os.Signal, 4096)

// signals gets signals that MPI libraries take for themselves, while goroutines are at work: they reach
// the program as those of any Go program do, and a write to nil stays a panic.
func signals(ctx context.Context, g *dist.Group, s *loris.Session) error {
	const rounds = 200
	for i := range rounds {
		for _, n := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP} {
			if err := syscall.Kill(os.Getpid(), n); err != nil {
				return err
			}
			select {
			case got := <-noticed:
				if got != n {
					return fmt.Errorf("round %d: %v came for %v", i, got, n)
				}
			case <-time.After(10 * time.Second):
				return fmt.Errorf("round %d: %v did not come", i, n)
			}
		}
		if i%20 == 0 {
			if _, err := g.AllReduce(s.With().Ones(9), dist.Sum).Float32s(ctx); err != nil {
				return err
			}
		}
	}
	defer func() { recover() }()
	var p *int
	*p = 1
	return errors.New("a write to nil was done")
}

// full saves a checkpoint, and another one of which rank 1 can write no more than the beginning, as on a
// disk that is full: files may not grow beyond a limit. The first one must be there whole.
func full(ctx context.Context, g *dist.Group, s *loris.Session) error {
	dir := os.Getenv("LORIS_TEST_DIR")
	net := nn.NewSequential(nn.NewLinear(100, 100, nn.With(s.With())), nn.NewLinear(100, 100, nn.With(s.With())))
	c := &parallel.Checkpoint{Group: g, Model: net, Step: 1}
	weights := func() (sum float64, err error) {
		for _, v := range net.Params() {
			x, failed := v.Value().Cast(loris.F64).Sum().Item(ctx)
			sum, err = sum+x, errors.Join(err, failed)
		}
		return sum, err
	}
	before, err := weights()
	if err := errors.Join(err, c.Save(ctx, dir)); err != nil {
		return err
	}
	for _, v := range net.Params() {
		v.Assign(v.Value().Add(1))
	}
	if err := s.MarkStep(ctx); err != nil {
		return err
	}
	c.Step = 2
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if g.Rank() == 1 {
		fmt.Fprintf(os.Stderr, "%d: fault\n", time.Now().UnixMilli())
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8 << 10, Max: old.Max}); err != nil {
			return err
		}
	}
	saved := c.Save(ctx, dir)
	if err := errors.Join(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old), c.Load(ctx, dir)); err != nil {
		return fmt.Errorf("the checkpoint from before is lost: %w", err)
	}
	after, err := weights()
	if err != nil || c.Step != 1 || after != before {
		return fmt.Errorf("the checkpoint of step %d has %v, want %v: %w", c.Step, after, before, err)
	}
	if saved == nil {
		return nil // the test misses the error
	}
	return fmt.Errorf("%w; it is whole", saved)
}
