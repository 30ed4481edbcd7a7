package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loris-ml/loris/bench/internal/process"
	"github.com/loris-ml/loris/serve/client"
)

// system is a server that is measured.
type system struct {
	name string
	// start serves one model and returns the ways to call it.
	start func(ctx context.Context, c *config, m *model) (*running, error)
}

// running is a started server with the ways to call it, by protocol.
type running struct {
	*process.Server
	calls     map[string]caller
	protocols []string // of calls, in the order of the table
}

var systems = []system{{"loris", startLoris}, {"triton", startTriton}, {"mlserver", startMLServer}, {"mosec", startMosec}}

// config is what all modes have in common.
type config struct {
	models    string // the folder with packages
	peers     string // the folder of setup.sh
	scripts   string // the folder of what the peers run
	loris     string // the binary
	instances int
	threads   int    // of a run of the model
	work      string // a folder for this run
}

// freePort returns a port that nobody listens on.
func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		p, err := freePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// write makes a file of the run and its folders.
func (c *config) write(path string, text string) error {
	path = filepath.Join(c.work, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// environment is that of a peer: what the Python servers read, and the threads of a run.
func (c *config) environment(more ...string) []string {
	env := append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", fmt.Sprint("OMP_NUM_THREADS=", c.threads), "BENCH_SERVE_PEERS="+c.scripts)
	return append(env, more...)
}

func (c *config) python(peer string) string { return filepath.Join(c.peers, peer, "bin", "python") }

// infers calls a model through a client.
func infers(address string, m *model) (*client.Client, caller, error) {
	cl, err := client.New(address, client.Options{})
	if err != nil {
		return nil, nil, err
	}
	return cl, func(ctx context.Context, _ int) error {
		r, err := cl.Infer(ctx, &client.Request{Model: m.name, Inputs: m.inputs})
		if err != nil {
			return err
		}
		defer r.Release()
		return m.check(&r.Outputs[0])
	}, nil
}

// oip starts a server of the protocol at two ports and waits until the model answers.
func oip(ctx context.Context, name, dir string, line, env []string, m *model, addresses map[string]string, order ...string) (*running, error) {
	out := &running{calls: map[string]caller{}, protocols: order}
	for _, protocol := range order {
		scheme, host, _ := strings.Cut(addresses[protocol], "://")
		call, err := calling(scheme, host, m)
		if err != nil {
			return nil, err
		}
		out.calls[protocol] = call
	}
	ready := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return out.calls[order[len(order)-1]](ctx, 0)
	}
	var err error
	out.Server, err = process.StartServer(ctx, name, dir, line, env, ready)
	return out, err
}

// batching is the part of config.pbtxt that Loris and Triton share.
func (c *config) batching() string {
	return fmt.Sprintf("max_batch_size: 64\ndynamic_batching {}\ninstance_group [{ count: %d kind: KIND_CPU }]\n", c.instances)
}

func startLoris(ctx context.Context, c *config, m *model) (*running, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	if err := c.write("loris/"+m.name+"/config.pbtxt", c.batching()+fmt.Sprintf("parameters { key: \"threads\" value { string_value: \"%d\" } }\n", c.threads)); err != nil {
		return nil, err
	}
	if err := c.link(m.file, "loris/"+m.name+"/1/model.pt2"); err != nil {
		return nil, err
	}
	host := fmt.Sprintf("127.0.0.1:%d", ports[0])
	line := []string{c.loris, "serve", "--models", filepath.Join(c.work, "loris"), "--mode", "explicit", "--load-model", m.name, "--http", host, "--log-level", "warn"}
	return oip(ctx, "loris", c.work, line, os.Environ(), m, map[string]string{"REST": "http://" + host, "gRPC": "grpc://" + host}, "REST", "gRPC")
}

// link makes a link to a file, in the place of one that is there.
func (c *config) link(file, path string) error {
	path = filepath.Join(c.work, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	_ = os.Remove(path) // it need not be there
	return os.Symlink(file, path)
}

func startTriton(ctx context.Context, c *config, m *model) (*running, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "backend: \"python\"\n%sparameters { key: \"package\" value { string_value: %q } }\n", c.batching(), m.file)
	for _, in := range m.inputs {
		dims := strings.ReplaceAll(strings.Trim(fmt.Sprint(in.Shape[1:]), "[]"), " ", ", ")
		fmt.Fprintf(&text, "input { name: %q data_type: TYPE_%s dims: [%s] }\n", in.Name, in.Datatype, dims)
	}
	fmt.Fprintf(&text, "output { name: \"OUTPUT__0\" data_type: TYPE_FP32 dims: [%d] }\n", len(m.want))
	if err := c.write("triton/"+m.name+"/config.pbtxt", text.String()); err != nil {
		return nil, err
	}
	if err := c.link(filepath.Join(c.scripts, "triton_model.py"), "triton/"+m.name+"/1/model.py"); err != nil {
		return nil, err
	}
	sites, err := filepath.Glob(filepath.Join(c.peers, "triton", "lib", "python3*", "site-packages"))
	if err != nil || len(sites) != 1 {
		return nil, fmt.Errorf("there is no environment %s/triton: %w", c.peers, err)
	}
	server := filepath.Join(sites[0], "pytriton", "tritonserver")
	line := []string{
		filepath.Join(server, "bin", "tritonserver"), "--model-repository=" + filepath.Join(c.work, "triton"), "--backend-directory=" + filepath.Join(server, "backends"),
		fmt.Sprintf("--http-port=%d", ports[0]), fmt.Sprintf("--grpc-port=%d", ports[1]), fmt.Sprintf("--metrics-port=%d", ports[2]),
		"--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--model-control-mode=explicit", "--load-model=" + m.name, "--allow-gpu-metrics=false",
	}
	env := c.environment("PATH="+filepath.Dir(c.python("triton"))+":"+os.Getenv("PATH"), "PYTHONPATH="+sites[0])
	return oip(ctx, "triton", c.work, line, env, m,
		map[string]string{"REST": fmt.Sprintf("http://127.0.0.1:%d", ports[0]), "gRPC": fmt.Sprintf("grpc://127.0.0.1:%d", ports[1])}, "REST", "gRPC")
}

// startMLServer has gRPC alone measured: its REST has no binary tensors.
func startMLServer(ctx context.Context, c *config, m *model) (*running, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf(`{"host": "127.0.0.1", "http_port": %d, "grpc_port": %d, "metrics_port": %d, "parallel_workers": 0}`, ports[0], ports[1], ports[2])
	own := fmt.Sprintf(`{"name": %q, "implementation": "mlserver_model.Package", "max_batch_size": 64, "max_batch_time": 0.001, "parameters": {"uri": %q}}`, m.name, m.file)
	for path, text := range map[string]string{"mlserver/settings.json": settings, "mlserver/model-settings.json": own} {
		if err := c.write(path, text); err != nil {
			return nil, err
		}
	}
	line := []string{filepath.Join(filepath.Dir(c.python("mlserver")), "mlserver"), "start", "."}
	return oip(ctx, "mlserver", filepath.Join(c.work, "mlserver"), line, c.environment("PYTHONPATH="+c.scripts), m,
		map[string]string{"gRPC": fmt.Sprintf("grpc://127.0.0.1:%d", ports[1])}, "gRPC")
}

func startMosec(ctx context.Context, c *config, m *model) (*running, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	line := []string{c.python("mosec"), filepath.Join(c.scripts, "mosec_server.py"), "--address", "127.0.0.1", "--port", fmt.Sprint(ports[0])}
	env := c.environment("MOSEC_PACKAGE="+m.file, "MOSEC_INPUTS="+m.shapes(), fmt.Sprintf("MOSEC_INSTANCES=%d", c.instances))
	call, err := posts(fmt.Sprintf("http://127.0.0.1:%d/inference", ports[0]), m)
	if err != nil {
		return nil, err
	}
	s, err := process.StartServer(ctx, "mosec", c.work, line, env, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return call(ctx, 0)
	})
	return &running{Server: s, calls: map[string]caller{"bytes": call}, protocols: []string{"bytes"}}, err
}

// posts sends the inputs' bytes, and gets the output's.
func posts(url string, m *model) (caller, error) {
	var parts [][]byte
	for i := range m.inputs {
		parts = append(parts, m.inputs[i].Data)
	}
	w, err := newWire(url, nil, parts...)
	if err != nil {
		return nil, err
	}
	w.check = func(body []byte, _ int) error {
		return m.check(&client.Tensor{Name: "answer", Datatype: "FP32", Data: body})
	}
	return w.call, nil
}
