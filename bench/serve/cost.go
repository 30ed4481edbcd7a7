package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
)

// cost sends one request after another to the server and, by turns, to one that reads bytes from its
// connection, computes for as long as the model runs and writes bytes: what is beyond that one is the
// server's own. A third, of net/http, answers the same request with the same bytes at once.
func cost(ctx context.Context, args []string) error {
	c := &config{}
	f := flag.NewFlagSet("cost", flag.ContinueOnError)
	c.flags(f)
	rounds := f.Int("rounds", 20, "turns of each")
	turn := f.Duration("time", 250*time.Millisecond, "how long a turn takes")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	defer c.clean()
	m, err := openModel(c.models, "mlp")
	if err != nil {
		return err
	}
	server, _, host, err := c.startMLP(ctx)
	if err != nil {
		return err
	}
	defer server.Kill()
	other, otherHost, err := c.startEcho(ctx, host, m)
	if err != nil {
		return err
	}
	defer other.Kill()
	for _, scheme := range []string{"http", "grpc"} {
		if err := c.costOf(ctx, scheme, m, host, otherHost, *rounds, *turn); err != nil {
			return err
		}
	}
	return errors.Join(terminate(ctx, server), terminate(ctx, other))
}

// costOf measures over one protocol.
func (c *config) costOf(ctx context.Context, scheme string, m *model, host, otherHost string, rounds int, turn time.Duration) error {
	var calls [3]caller
	for i, at := range []string{host, otherHost} {
		var err error
		if calls[i], err = calling(scheme, at, m); err != nil {
			return err
		}
	}
	_, run, err := turnOf(ctx, calls[0], host, m.name, 4*turn)
	if err != nil {
		return err
	}
	bare, bareHost, err := c.startBare(ctx, run)
	if err != nil {
		return err
	}
	defer bare.Kill()
	calls[2] = bareCall(bareHost)
	var took [3][]float64
	var runs []float64
	for range rounds {
		for i, call := range calls {
			t, run, err := turnOf(ctx, call, host, m.name, turn)
			if err != nil {
				return err
			}
			if took[i] = append(took[i], t); i == 0 {
				runs = append(runs, run)
			}
		}
	}
	all, alone, floor, ran := median(took[0]), median(took[1]), median(took[2])-run, median(runs)
	fmt.Printf("%s: %5.1f µs a request, of which the model's run %.1f and bytes over TCP %5.1f: the server's own %5.1f; the same bytes by net/http alone, without the run, %5.1f\n",
		scheme, all, ran, floor, all-ran-floor, alone)
	return terminate(ctx, bare)
}

// turnOf has one worker send for a time, and returns the median of a request and the mean of the
// model's runs meanwhile, if there were any, in microseconds.
func turnOf(ctx context.Context, call caller, host, model string, turn time.Duration) (took, run float64, err error) {
	before, err := inferTime(ctx, host, model)
	if err != nil {
		return 0, 0, err
	}
	one := closedLoop(ctx, call, 1, turn)
	after, err := inferTime(ctx, host, model)
	if n := after.Count - before.Count; n > 0 {
		run = float64(after.Ns-before.Ns) / float64(n) / 1e3
	}
	return float64(one.P50) / 1e3, run, errors.Join(one.err, err)
}

// A request for the MLP and its answer have about so many bytes.
const bareRequest, bareAnswer = 600, 300

// bareCall sends bytes and reads others, over one connection for each worker.
func bareCall(host string) caller {
	conns := map[int]net.Conn{} // of one worker: nothing guards it
	return func(ctx context.Context, i int) (err error) {
		if conns[i] == nil {
			if conns[i], err = new(net.Dialer).DialContext(ctx, "tcp", host); err != nil {
				return err
			}
		}
		if _, err := conns[i].Write(make([]byte, bareRequest)); err != nil {
			return err
		}
		_, err = io.ReadFull(conns[i], make([]byte, bareAnswer))
		return err
	}
}

// startBare runs this program as a server of bytes that computes for some microseconds.
func (c *config) startBare(ctx context.Context, run float64) (*process.Server, string, error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	host := fmt.Sprintf("127.0.0.1:%d", port)
	call := bareCall(host)
	s, err := process.StartServer(ctx, "bare", c.work, []string{self, "bare", host, fmt.Sprint(int(run * 1e3))}, os.Environ(), func(ctx context.Context) error { return call(ctx, 0) })
	return s, host, err
}

// bare serves bytes at its first argument, after as many nanoseconds as the second says.
func bare(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("bare needs an address and a time")
	}
	ns, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", args[0])
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // ends Accept
	defer stop()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			in, out := make([]byte, bareRequest), make([]byte, bareAnswer)
			for err := error(nil); err == nil; {
				if _, err = io.ReadFull(conn, in); err == nil {
					for end := time.Now().Add(time.Duration(ns)); time.Now().Before(end); {
					}
					_, err = conn.Write(out)
				}
			}
		}()
	}
}

// calling returns how a server is asked over a protocol with the least of a client there is.
func calling(scheme, host string, m *model) (caller, error) {
	if scheme == "http" {
		return wireREST("http://"+host, m)
	}
	if m.bytes() < maxWireGRPC {
		return newWireGRPC(host, m), nil
	}
	_, call, err := infers(scheme+"://"+host, m)
	return call, err
}

// duration is one of the protocol's statistics.
type duration struct{ Count, Ns int64 }

// inferTime asks how long the runs of a model have taken.
func inferTime(ctx context.Context, host, model string) (d duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/v2/models/"+model+"/stats", nil)
	if err != nil {
		return d, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return d, err
	}
	defer resp.Body.Close()
	var stats struct {
		Models []struct {
			Times struct {
				Infer duration `json:"compute_infer"`
			} `json:"inference_stats"`
		} `json:"model_stats"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil {
		return d, err
	}
	if len(stats.Models) != 1 {
		return d, fmt.Errorf("statistics of %d models", len(stats.Models))
	}
	return stats.Models[0].Times.Infer, nil
}

// startEcho runs this program as a server that answers as the one at another address.
func (c *config) startEcho(ctx context.Context, of string, m *model) (*process.Server, string, error) {
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	host := fmt.Sprintf("127.0.0.1:%d", port)
	call, err := calling("http", host, m)
	if err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	line := []string{self, "echo", host, of}
	s, err := process.StartServer(ctx, "echo", c.work, line, os.Environ(), func(ctx context.Context) error { return call(ctx, 0) })
	return s, host, err
}

// recorded is an answer that is given again.
type recorded struct {
	header, trailer http.Header
	body            []byte
}

// echo serves at its first argument. The first request to a path is passed on to the second, and what
// that one answers is the answer to all later ones.
func echo(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("echo needs the address at which it serves, and that of the server whose answers it repeats")
	}
	var both, h2c http.Protocols
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	h2c.SetUnencryptedHTTP2(true)
	clients := [3]*http.Client{1: {}, 2: {Transport: &http.Transport{Protocols: &h2c}}}
	var answers sync.Map // of path to *recorded
	handler := func(w http.ResponseWriter, r *http.Request) error {
		in, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		known, ok := answers.Load(r.URL.Path)
		if !ok {
			again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+args[1]+r.URL.Path, bytes.NewReader(in))
			if err != nil {
				return err
			}
			again.Header = r.Header
			resp, err := clients[r.ProtoMajor].Do(again)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			known = &recorded{resp.Header, resp.Trailer, body}
			if resp.StatusCode == http.StatusOK {
				answers.Store(r.URL.Path, known)
			}
		}
		a := known.(*recorded)
		for name, value := range a.header {
			w.Header()[name] = value
		}
		for name, value := range a.trailer {
			w.Header()[http.TrailerPrefix+name] = value
		}
		_, err = w.Write(a.body)
		return err
	}
	s := &http.Server{Addr: args[0], Protocols: &both, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handler(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // ends ListenAndServe
	defer stop()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
