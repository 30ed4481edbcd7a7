package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loris-ml/loris/internal/longtest"
	"github.com/loris-ml/loris/safetensors"
)

// affine is x*w+1, so that an answer to zeros is 1 and one to ones tells w.
const affine = `program @affine {
  %x = parameter "x" : f32[2]
  %w = parameter "w" : f32[2]
  %one = parameter "one" : f32[2]
  %0 = add(mul(%x, %w), %one)
  return %0
}`

// weightsFile is a safetensors file with w of the power of two 2**n.
func weightsFile(t testing.TB, n int, more ...safetensors.Tensor) []byte {
	t.Helper()
	bits := uint32(127+n) << 23
	data := bytes.Repeat([]byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)}, 2)
	var b bytes.Buffer
	all := append([]safetensors.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int64{2}, Data: data}}, more...)
	if err := safetensors.Write(&b, all, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// affineModel writes the model and its first weights, w=1, and returns the paths.
func affineModel(t testing.TB) (model, weights string) {
	t.Helper()
	dir := t.TempDir()
	one := safetensors.Tensor{Name: "one", DType: safetensors.F32, Shape: []int64{2}, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}}
	return write(t, dir, "affine.lir", []byte(affine)), write(t, dir, "weights.safetensors", weightsFile(t, 0, one))
}

const onesBody = `{"inputs":[{"name":"x","shape":[2],"datatype":"FP32","data":[1,1]}]}`

// Updates are off unless allowed, and their scope is closed unless opened.
func TestWeightsAreClosed(t *testing.T) {
	model, first := affineModel(t)
	for _, tt := range []struct {
		o      Options
		status int
	}{
		{Options{AllowWeightUpdate: true}, http.StatusForbidden},
		{Options{Allow: []string{"weights"}}, http.StatusForbidden},
		{Options{AllowWeightUpdate: true, Allow: []string{"weights"}}, http.StatusOK},
	} {
		tt.o.Files, tt.o.Weights = []string{model}, []string{first}
		hs := start(t, tt.o)
		status, body := ask(t, "GET", hs.URL+"/v2/models/affine/weights", "")
		if status != tt.status {
			t.Errorf("%v: %d %s, want %d", tt.o.Allow, status, body, tt.status)
		}
		if status, body = ask(t, "POST", hs.URL+"/v2/models/affine/infer", onesBody); status != 200 || strings.Contains(body, `"weight_version":"initial"`) != tt.o.AllowWeightUpdate {
			t.Errorf("%v: %d %s", tt.o, status, body)
		}
	}
}

// TestChaos loads a server with requests while weights are uploaded, activated and
// dropped, the model is loaded anew and clients go away. Every answer is that of the set
// that it names; none is lost.
func TestChaos(t *testing.T) {
	length := 500 * time.Millisecond
	if longtest.Enabled() {
		length = 30 * time.Second
	}
	model, first := affineModel(t)
	hs := start(t, Options{Files: []string{model}, Weights: []string{first}, AllowWeightUpdate: true, Allow: []string{"weights", "model-repository"}})
	var answered, swaps, reloads atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if g == 3 && i%2 == 1 { // a client that goes away in the middle
					c := http.Client{Timeout: time.Duration(i%20) * 20 * time.Microsecond}
					if r, err := c.Post(hs.URL+"/v2/models/affine/infer", "application/json", strings.NewReader(onesBody)); err == nil {
						r.Body.Close()
					}
					continue
				}
				status, body := ask(t, "POST", hs.URL+"/v2/models/affine/infer", onesBody)
				if status != 200 || !strings.Contains(body, wanted(body)) {
					t.Errorf("%d %s: want %s", status, body, wanted(body))
					return
				}
				answered.Add(1)
			}
		})
	}
	end := time.Now().Add(length)
	for i := 0; time.Now().Before(end) && !t.Failed(); i++ {
		n := 1 + i%20
		url := fmt.Sprintf("%s/v2/models/affine/weights?partial=true&weight_version=w%d", hs.URL, n)
		if status, body := ask(t, "POST", url, string(weightsFile(t, n)), "Content-Type", "application/octet-stream"); status != 200 && status != 409 {
			t.Errorf("update: %d %s", status, body)
		}
		swaps.Add(1)
		if i%10 == 9 {
			if status, body := ask(t, "POST", hs.URL+"/v2/repository/models/affine/load", ""); status != 200 {
				t.Errorf("load: %d %s", status, body)
			}
			reloads.Add(1)
		}
	}
	close(stop)
	wg.Wait()
	if answered.Load() == 0 {
		t.Error("nothing was answered")
	}
	t.Logf("%d answers beside %d updates and %d reloads", answered.Load(), swaps.Load(), reloads.Load())
}

// wanted returns the data that an answer must have for the set that it names.
func wanted(body string) string {
	_, name, _ := strings.Cut(body, `"weight_version":"`)
	name, _, _ = strings.Cut(name, `"`)
	n := 0
	if name != "initial" {
		if _, err := fmt.Sscanf(name, "w%d", &n); err != nil {
			return "a weight_version"
		}
	}
	return fmt.Sprintf(`"data":[%d,%d]`, 1<<n+1, 1<<n+1)
}

func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
