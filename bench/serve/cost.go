package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
)

// cost sends one request after another to the server and, by turns, to one of net/http that answers
// the same request with the same bytes at once. What is beyond that one and beyond the run of the
// model is what Loris adds.
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
		var calls [2]caller
		for i, at := range []string{otherHost, host} {
			if calls[i], err = calling(scheme, at, m); err != nil {
				return err
			}
		}
		var took [2][]float64
		var runs []float64
		for range *rounds {
			before, err := inferTime(ctx, host, m.name)
			if err != nil {
				return err
			}
			for i, call := range calls {
				one := closedLoop(ctx, call, 1, *turn)
				if one.err != nil {
					return one.err
				}
				took[i] = append(took[i], float64(one.P50)/1e3)
			}
			after, err := inferTime(ctx, host, m.name)
			if err != nil {
				return err
			}
			runs = append(runs, float64(after.Ns-before.Ns)/float64(after.Count-before.Count)/1e3)
		}
		all, bare, run := median(took[1]), median(took[0]), median(runs)
		fmt.Printf("%s: %5.1f µs a request, of which the model's run %.1f; the same bytes by net/http alone %5.1f; beyond the run %5.1f; beyond both %5.1f\n",
			scheme, all, run, bare, all-run, all-run-bare)
	}
	return errors.Join(terminate(ctx, server), terminate(ctx, other))
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
