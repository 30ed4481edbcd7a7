package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/loris-ml/loris/backend/cpu"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/safetensors"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// fake is a hub that has one repository: small files itself, weights on another host.
type fake struct {
	t        *testing.T
	files    map[string]string
	token    string                         // demanded
	contents func(name, text string) string // what is sent; nil is the text

	mu     sync.Mutex
	breaks int // so many replies with contents end in the middle
	busy   int // so many requests are refused for the moment
	ranges []string
	bodies int // how often contents were sent
}

func newFake(t *testing.T, files map[string]string) (*fake, *Client) {
	f := &fake{t: t, files: files}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "cdn.test" {
			f.large(w, r)
		} else {
			f.serve(w, r)
		}
	}))
	t.Cleanup(s.Close)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	for _, name := range []string{"HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"} {
		t.Setenv(name, "")
	}
	t.Setenv("HF_HOME", t.TempDir())
	return f, &Client{Endpoint: "http://hub.test", Cache: t.TempDir(), HTTP: &http.Client{Transport: transport}}
}

func (f *fake) take(n *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n--
	return *n >= 0
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	if f.take(&f.busy) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token {
		w.Header().Set("X-Error-Message", "this repository is gated")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/api/models/org/tiny/revision/main" {
		var names []map[string]string
		for name := range f.files {
			names = append(names, map[string]string{"rfilename": name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": names})
		return
	}
	if to, ok := strings.CutPrefix(r.URL.Path, "/org/tiny/resolve/"+commit+"/"); ok {
		f.resolve(w, r, to)
		return
	}
	w.WriteHeader(http.StatusNotFound)
}

func (f *fake) resolve(w http.ResponseWriter, r *http.Request, name string) {
	text, ok := f.files[name]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if filepath.Ext(name) == ".safetensors" {
		w.Header().Set("X-Linked-Etag", fmt.Sprintf("\"%x\"", sha256.Sum256([]byte(text))))
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(text)))
		w.Header().Set("Location", "http://cdn.test/"+name)
		w.WriteHeader(http.StatusFound)
		return
	}
	w.Header().Set("Etag", fmt.Sprintf("\"%x\"", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text))))
	f.send(w, r, name, text)
}

// large is the host of large files, which must not see the token.
func (f *fake) large(w http.ResponseWriter, r *http.Request) {
	if a := r.Header.Get("Authorization"); a != "" {
		f.t.Errorf("the other host was sent %q", a)
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	f.send(w, r, name, f.files[name])
}

func (f *fake) send(w http.ResponseWriter, r *http.Request, name, text string) {
	if f.contents != nil {
		text = f.contents(name, text)
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		return
	}
	f.mu.Lock()
	f.bodies++
	if at := r.Header.Get("Range"); at != "" {
		f.ranges = append(f.ranges, at)
	}
	f.mu.Unlock()
	if f.take(&f.breaks) {
		var from int
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		w.Header().Set("Content-Length", fmt.Sprint(len(text)-from))
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(text)-1, len(text)))
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = io.WriteString(w, text[from:from+(len(text)-from)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, name, time.Time{}, strings.NewReader(text))
}

// tiny is the repository of these tests: a linear layer in two shards, every element of which is 0.5.
func tiny(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	infos := []safetensors.Info{{Name: "weight", DType: safetensors.F32, Shape: []int64{2, 3}}, {Name: "bias", DType: safetensors.F32, Shape: []int64{2}}}
	err := safetensors.WriteShards(filepath.Join(dir, "model.safetensors"), infos, nil, 24, func(i safetensors.Info, w io.Writer) error {
		n := 2
		if i.Name == "weight" {
			n = 6
		}
		_, err := io.WriteString(w, strings.Repeat("\x00\x00\x00\x3f", n))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"config.json": `{"hidden_size": 3}`, "tokenizer.json": "{}", "README.md": "# tiny", "onnx/model.onnx": "not asked for"}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func TestDownloadedModelLoads(t *testing.T) {
	f, c := newFake(t, tiny(t))
	f.token, c.Token = "secret", "secret"
	folder, err := c.Download(t.Context(), "org/tiny", "")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Hidden int `json:"hidden_size"`
	}
	if err := folder.Config(&config); err != nil || config.Hidden != 3 {
		t.Error(config, err)
	}
	net := nn.NewLinear(3, 2)
	if _, err := folder.Load(t.Context(), net); err != nil {
		t.Fatal(err)
	}
	for name, v := range net.Params() {
		if sum, err := v.Value().Mean().Item(t.Context()); err != nil || sum != 0.5 {
			t.Errorf("%s has the mean %v, %v", name, sum, err)
		}
	}
	if _, err := folder.Path("tokenizer.json"); err != nil {
		t.Error(err)
	}
	if _, err := folder.Path("onnx/model.onnx"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that nobody asked for: %v", err)
	}
	if folder.Commit() != commit {
		t.Errorf("the commit is %s", folder.Commit())
	}
	// The layout is that of huggingface_hub.
	if b, err := os.ReadFile(filepath.Join(c.Cache, "models--org--tiny", "refs", "main")); string(b) != commit {
		t.Error(string(b), err)
	}
	sum := fmt.Sprintf("%x", sha1.Sum([]byte("blob 18\x00"+f.files["config.json"])))
	blob, err := os.Stat(filepath.Join(c.Cache, "models--org--tiny", "blobs", sum))
	if err != nil {
		t.Fatal(err)
	}
	if is, err := os.Stat(filepath.Join(c.Cache, "models--org--tiny", "snapshots", commit, "config.json")); err != nil || !os.SameFile(is, blob) {
		t.Error(is, err)
	}
}

func TestWhatIsThereIsNotDownloadedAgain(t *testing.T) {
	f, c := newFake(t, tiny(t))
	for range 2 {
		if _, err := c.Download(t.Context(), "org/tiny", "main"); err != nil {
			t.Fatal(err)
		}
	}
	if f.bodies != 5 {
		t.Errorf("contents were sent %d times, want once for each of 5 files", f.bodies)
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	f.busy = 1 << 30
	if _, err := c.Download(t.Context(), "org/tiny", "main"); err != nil {
		t.Error(err)
	}
	if _, err := c.Cached("org/other", "main"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestDownloadGoesOnWhereItEnded(t *testing.T) {
	f, c := newFake(t, map[string]string{"model.safetensors": strings.Repeat("0123456789", 100)})
	f.breaks, f.busy = 2, 1
	folder, err := c.Download(t.Context(), "org/tiny", "main")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"bytes=500-", "bytes=750-"}; !slices.Equal(f.ranges, want) {
		t.Errorf("asked for %v, want %v", f.ranges, want)
	}
	path, err := folder.Weights()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); string(b) != f.files["model.safetensors"] {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// Another call goes on, too, and a server that breaks every reply ends the download.
func TestDownloadKeepsWhatArrived(t *testing.T) {
	f, c := newFake(t, map[string]string{"model.safetensors": strings.Repeat("x", 1<<10)})
	f.breaks = 1 << 30
	if _, err := c.Download(t.Context(), "org/tiny", "main"); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	f.breaks, f.ranges = 0, nil
	if _, err := c.Download(t.Context(), "org/tiny", "main"); err != nil {
		t.Fatal(err)
	}
	if len(f.ranges) != 1 {
		t.Errorf("asked for %v, want the rest once", f.ranges)
	}
}

func TestWrongContentsAreRefused(t *testing.T) {
	for name, change := range map[string]func(name, text string) string{
		"another byte": func(_, text string) string { return "X" + text[1:] },
		"more":         func(_, text string) string { return text + "more" },
	} {
		t.Run(name, func(t *testing.T) {
			f, c := newFake(t, map[string]string{"model.safetensors": "0123456789"})
			f.contents = change
			if _, err := c.Download(t.Context(), "org/tiny", "main"); !errors.Is(err, ErrChecksum) {
				t.Fatal(err)
			}
			left, err := os.ReadDir(filepath.Join(c.Cache, "models--org--tiny", "blobs"))
			if err != nil || len(left) != 0 {
				t.Error(left, err)
			}
			f.contents = nil
			if _, err := c.Download(t.Context(), "org/tiny", "main"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDownloadSaysWhatIsMissing(t *testing.T) {
	f, c := newFake(t, tiny(t))
	for _, test := range []struct {
		repo, revision, pattern string
		want                    error
		text                    string
	}{
		{"org/none", "main", "*", ErrNotFound, "org/none"},
		{"org/tiny", "v2", "*", ErrNotFound, "v2"},
		{"org/tiny", "main", "*.gguf", ErrNotFound, "*.gguf"},
		{"../tiny", "main", "*", nil, "no name of a repository"},
		{"org/tiny", "../main", "*", nil, "no revision"},
	} {
		_, err := c.Download(t.Context(), test.repo, test.revision, test.pattern)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%v: %v", test, err)
		}
	}
	f.token = "secret"
	if _, err := c.Download(t.Context(), "org/tiny", "main"); !errors.Is(err, ErrAccess) || !strings.Contains(err.Error(), "gated") {
		t.Error(err)
	}
	f.token, f.files = "", map[string]string{"../escape.json": "{}"}
	if _, err := c.Download(t.Context(), "org/tiny", "main"); err == nil || !strings.Contains(err.Error(), "escape") {
		t.Error(err)
	}
	f.files = map[string]string{"a\x1b[2J.json": "{}"}
	if _, err := c.Download(t.Context(), "org/tiny", "main"); err == nil || !strings.Contains(err.Error(), `\x1b`) || strings.Contains(err.Error(), "\x1b") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Download(ctx, "org/tiny", "main"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTokenOfTheEnvironment(t *testing.T) {
	f, c := newFake(t, map[string]string{"config.json": "{}"})
	f.token = "stored"
	if err := os.WriteFile(filepath.Join(os.Getenv("HF_HOME"), "token"), []byte("stored\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Download(t.Context(), "org/tiny", "main"); err != nil {
		t.Error(err)
	}
	c.Cache = t.TempDir()
	t.Setenv("HF_TOKEN", "another")
	if _, err := c.Download(t.Context(), "org/tiny", "main"); !errors.Is(err, ErrAccess) {
		t.Error(err)
	}
}

// Goroutines that want the same files wait for each other: every file arrives once.
func TestDownloadsAtOnce(t *testing.T) {
	f, c := newFake(t, tiny(t))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := c.Download(t.Context(), "org/tiny", "main"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if f.bodies != 5 {
		t.Errorf("contents were sent %d times, want once for each of 5 files", f.bodies)
	}
}

func TestFolderSaysWhatItLacks(t *testing.T) {
	dir := t.TempDir()
	folder, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Config(new(any)); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := folder.Weights(); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "*.safetensors") {
		t.Error(err)
	}
	put("pytorch_model.bin", "")
	if _, err := folder.Weights(); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "pytorch_model.bin") {
		t.Error(err)
	}
	put("adapter_model.safetensors", "")
	if path, err := folder.Weights(); err != nil || filepath.Base(path) != "adapter_model.safetensors" {
		t.Error(path, err)
	}
	put("other.safetensors", "")
	if _, err := folder.Weights(); err == nil || !strings.Contains(err.Error(), "no index") {
		t.Error(err)
	}
	put("config.json", "{")
	if err := folder.Config(new(any)); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Error(err)
	}
	for _, name := range []string{"../x", "/etc/passwd", "a/../b", "", ".", "c:x", `a\b`} {
		if _, err := folder.Path(name); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(dir, "config.json")); err == nil {
		t.Error("a file is a folder")
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
