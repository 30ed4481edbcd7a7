package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/client"
)

// storm is a run of chaos. Its model computes x·w + 1, where all of w is 2ⁿ for the set of weights "n-…"
// and n is 0 for the first one, so that each answer tells whether it is that of the set that it names.
type storm struct {
	config
	long    time.Duration
	workers int
	seed    uint64

	proxy *proxy
	now   *process.Server

	mu     sync.Mutex
	counts map[string]int
	wrong  []error // answers that are not right, requests that were lost, servers that ended badly
}

const affine = `program @affine {
  %x = parameter "x" : f32[4,2]
  %w = parameter "w" : f32[4,2]
  %one = parameter "one" : f32[4,2]
  %0 = add(mul(%x, %w), %one)
  return %0
}
`

// weightsOf is a safetensors file of the set n.
func weightsOf(n int) ([]byte, error) {
	var file bytes.Buffer
	var all []safetensors.Tensor
	for name, v := range map[string]float32{"w": float32(math.Ldexp(1, n)), "one": 1} {
		t := client.FromSlice(name, slices.Repeat([]float32{v}, 8), 4, 2)
		all = append(all, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: t.Shape, Data: t.Data})
	}
	err := safetensors.Write(&file, all, nil)
	return file.Bytes(), err
}

func (s *storm) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

// fault is what must not happen.
func (s *storm) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts["FAULTS"]++
	if len(s.wrong) < 10 {
		s.wrong = append(s.wrong, err)
	}
}

// chaos loads a server behind a proxy with requests while its weights are replaced, the model is loaded
// anew, clients go away in the middle of requests and the server is restarted by SIGTERM. Every request
// must get the right answer of the set of weights that it names, or be refused with a status.
func chaos(ctx context.Context, args []string) (err error) {
	s := &storm{counts: map[string]int{}}
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.StringVar(&s.loris, "loris", "", "the loris command; it is built if there is none")
	f.DurationVar(&s.long, "time", time.Minute, "how long")
	f.IntVar(&s.workers, "concurrency", 8, "clients that ask one request after another, over each protocol")
	f.Uint64Var(&s.seed, "seed", 1, "of what is done when")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	defer s.clean()
	if err := s.writeModel(); err != nil {
		return err
	}
	var first *url.URL
	if s.now, first, err = s.startServer(ctx); err != nil {
		return err
	}
	defer func() { s.now.Kill() }()
	if s.proxy, err = startProxy(first); err != nil {
		return err
	}
	defer s.proxy.server.Close()
	err = s.rage(ctx)
	err = errors.Join(err, terminate(ctx, s.now))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts["sent twice by the proxy"] = int(s.proxy.again.Load())
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		fmt.Printf("%9d %s\n", s.counts[what], what)
	}
	return errors.Join(append(s.wrong, err)...)
}

func (s *storm) writeModel() error {
	weights, err := weightsOf(0)
	if err != nil {
		return err
	}
	return errors.Join(s.write("models/affine/1/model.lir", affine), s.write("models/affine/1/weights.safetensors", string(weights)))
}

// startServer starts a server and waits until it is ready.
func (s *storm) startServer(ctx context.Context) (*process.Server, *url.URL, error) {
	port, err := freePort()
	if err != nil {
		return nil, nil, err
	}
	u := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	c, err := client.New(u.String(), client.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	line := []string{s.loris, "serve", "--models", filepath.Join(s.work, "models"), "--http", u.Host, "--log-level", "error", "--allow-weight-update", "--allow", "weights,model-repository"}
	p, err := process.StartServer(ctx, "loris", s.work, line, os.Environ(), func(ctx context.Context) error {
		ready, err := c.Ready(ctx)
		if !ready && err == nil {
			err = errors.New("not ready")
		}
		return err
	})
	return p, u, err
}

// rage does everything at once for the time.
func (s *storm) rage(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, s.long)
	defer stop()
	var wg sync.WaitGroup
	var errs []error
	for i, scheme := range []string{"http", "grpc"} {
		c, err := client.New(scheme+"://"+s.proxy.address, client.Options{})
		if err != nil {
			return err
		}
		defer c.Close()
		for j := range s.workers {
			random := rand.New(rand.NewPCG(s.seed, uint64(1000*i+j)))
			wg.Go(func() { s.ask(ctx, c, scheme, random) })
		}
		random := rand.New(rand.NewPCG(s.seed, uint64(1000*i+999)))
		wg.Go(func() { s.change(ctx, c, random) })
	}
	random := rand.New(rand.NewPCG(s.seed, 5000))
	wg.Go(func() { s.cutOff(ctx, random) })
	wg.Go(func() { errs = append(errs, s.restart(ctx, rand.New(rand.NewPCG(s.seed, 6000)))) })
	wg.Wait()
	return errors.Join(errs...)
}

// ask sends requests, of which some are given up.
func (s *storm) ask(ctx context.Context, c *client.Client, protocol string, random *rand.Rand) {
	x := make([]float32, 8)
	for ctx.Err() == nil {
		rows := 1 + random.IntN(4)
		for i := range x {
			x[i] = float32(random.IntN(1000))
		}
		// The end of the storm gives no request up.
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		gone := random.IntN(20) == 0
		if gone {
			one, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Duration(random.IntN(2000))*time.Microsecond)
		}
		r, err := c.Infer(one, &client.Request{Model: "affine", Inputs: []client.Tensor{client.FromSlice("x", x[:2*rows], int64(rows), 2)}})
		cancel()
		var refused *client.Error
		switch {
		case err == nil:
			if err := answers(r, x[:2*rows]); err != nil {
				s.fault(err)
			} else {
				s.count(protocol + ": answered")
			}
			r.Release()
		case gone && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)):
			s.count(protocol + ": given up by the client")
		case errors.As(err, &refused):
			s.count(fmt.Sprintf("%s: refused with %d", protocol, refused.Status))
		default:
			s.fault(fmt.Errorf("%s: a request was lost: %w", protocol, err))
		}
	}
}

// answers compares an answer with that of the set of weights that it names.
func answers(r *client.Response, x []float32) error {
	name, _ := r.Parameters["weight_version"].(string)
	digits, _, _ := strings.Cut(name, "-")
	n, err := strconv.Atoi(digits)
	if err != nil && name != "initial" {
		return fmt.Errorf("an answer names the weights %q", name)
	}
	y, err := client.Slice[float32](&r.Outputs[0])
	if err != nil || len(y) != len(x) {
		return fmt.Errorf("an answer has %d elements, not %d: %w", len(y), len(x), err)
	}
	for i := range x {
		if want := float32(math.Ldexp(float64(x[i]), n)) + 1; y[i] != want {
			return fmt.Errorf("element %d of an answer of %q is %v, not %v", i, name, y[i], want)
		}
	}
	return nil
}

// change uploads weights, activates sets and loads the model anew. What the server refuses, or a restart
// cuts off, is counted.
func (s *storm) change(ctx context.Context, c *client.Client, random *rand.Rand) {
	for i := 0; ctx.Err() == nil; i++ {
		sleep(ctx, time.Duration(random.IntN(40))*time.Millisecond)
		var what string
		var err error
		switch k := random.IntN(10); {
		case k < 5:
			n := random.IntN(8)
			file, fails := weightsOf(n)
			if fails != nil {
				s.fault(fails)
				return
			}
			what = "weights uploaded"
			if random.IntN(5) == 0 {
				what, file = "damaged weights uploaded", file[:random.IntN(len(file))]
			}
			_, err = c.UpdateWeights(ctx, "affine", fmt.Sprintf("%d-%d-%d", n, i, random.IntN(1000)), bytes.NewReader(file))
			if err == nil && what != "weights uploaded" {
				s.fault(errors.New("damaged weights were taken"))
			}
		case k < 8:
			what, err = "first weights activated", c.ActivateWeights(ctx, "affine", "initial")
		default:
			what, err = "model loaded anew", c.Load(ctx, "affine")
		}
		if err != nil {
			what += ": refused, or cut off"
		}
		s.count(what)
	}
}

// cutOff opens connections that send a part of a request and go.
func (s *storm) cutOff(ctx context.Context, random *rand.Rand) {
	request := "POST /v2/models/affine/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"inputs\":[{\"name\":\"x\""
	for ctx.Err() == nil {
		sleep(ctx, time.Duration(random.IntN(20))*time.Millisecond)
		conn, err := net.Dial("tcp", s.proxy.backend.Load().Host) // past the proxy, which would wait for the rest
		if err != nil {
			continue // the server is about to end
		}
		_, err = conn.Write([]byte(request[:random.IntN(len(request))]))
		if err := errors.Join(err, conn.Close()); err == nil {
			s.count("connections cut off")
		}
	}
}

// restart replaces the server: mostly the next one is there before the old one is asked to end.
func (s *storm) restart(ctx context.Context, random *rand.Rand) error {
	for {
		sleep(ctx, 2*time.Second+time.Duration(random.IntN(4000))*time.Millisecond)
		if ctx.Err() != nil {
			return nil
		}
		next, u, err := s.startServer(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		old := s.now
		s.now = next
		what := "restarts"
		var ended error
		if random.IntN(4) == 0 { // it gets requests until it is gone
			what = "restarts whose server had requests until its end"
			ended = terminate(ctx, old)
			s.proxy.backend.Store(u)
		} else {
			s.proxy.backend.Store(u)
			ended = terminate(ctx, old)
		}
		if ended != nil {
			s.fault(ended)
		}
		s.count(what)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
