package pagetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/loris-ml/loris/serve"
)

// start serves two models, with labels and two sets of weights, and returns the address.
func start(t *testing.T, o serve.Options) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("models/double/1/model.lir", "program @double {\n  %x = parameter \"x\" : f32[8,3]\n  %0 = mul(%x, 2)\n  return %0\n}\n")
	write("models/double/config.pbtxt", `output [{ name: "out0" label_filename: "labels.txt" }]`)
	write("models/double/labels.txt", "cat\ndog\nlemur\n")
	write("models/picture/3/model.lir", "program @picture {\n  %x = parameter \"x\" : f32[1,3,16,16]\n  %b = parameter \"b\" : f32[1]\n  %0 = add(mul(%x, 0.5), %b)\n  return %0\n}\n")
	header := `{"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	weights := string([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}) + header + "\x00\x00\x00\x00"
	write("models/picture/3/weights.safetensors", weights)
	write("sets/other.safetensors", weights)
	if o.AllowWeightUpdate {
		o.WeightsDir = filepath.Join(dir, "sets")
	}
	o.Models, o.Version = filepath.Join(dir, "models"), "test"
	s, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	hs := httptest.NewServer(s)
	t.Cleanup(func() {
		hs.CloseClientConnections()
		hs.Close()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return hs.URL
}

// tab is a page in the browser. What goes wrong in it fails the test.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// browser starts one for all tests; the string says why there is none.
var browser = sync.OnceValues(func() (context.Context, string) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, "there is no Chromium here"
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	for _, flag := range []string{"disable-background-networking", "disable-component-update", "disable-sync", "disable-quic"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	stop = append(stop, cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	stop = append(stop, cancel)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[int]("1")); err != nil {
		return nil, "Chromium does not start: " + err.Error()
	}
	return ctx, ""
})

// stop ends the browser.
var stop []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(stop) - 1; i >= 0; i-- {
		stop[i]()
	}
	os.Exit(code)
}

func open(t *testing.T, url string, width, height int64) *tab {
	t.Helper()
	parent, missing := browser()
	if missing != "" {
		t.Skip(missing)
	}
	ctx, cancel := chromedp.NewContext(parent)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	p := &tab{t, ctx}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page: %v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" && !strings.Contains(e.Entry.Text, "Failed to load resource") {
				t.Errorf("the page: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	do(p, chromedp.EmulateViewport(width, height))
	do(p, chromedp.Navigate(url))
	return p
}

func do[T any](p *tab, a chromedp.Action[T]) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, a)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// eval returns what an expression is in the page.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	return do(p, chromedp.Evaluate[T](expression))
}

// exec runs statements in the page.
func (p *tab) exec(script string) {
	p.t.Helper()
	eval[bool](p, "(() => { "+script+"; return true })()")
}

// until waits for a condition.
func (p *tab) until(condition string) {
	p.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !eval[bool](p, condition); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("it does not come to be that %s; the page says %s", condition, eval[string](p, "document.body.innerText"))
		}
	}
}

// choose shows a model.
func (p *tab) choose(name string) {
	p.t.Helper()
	key := fmt.Sprintf("document.querySelector('[data-key^=\"%s/\"]')", name)
	p.until(key + " !== null")
	p.exec(key + ".click()")
	p.until(fmt.Sprintf("document.getElementById('detail-title').textContent.startsWith('%s,') && !document.getElementById('try').hidden", name))
}

// run sends the form and returns what is shown.
func (p *tab) run() string {
	p.t.Helper()
	p.exec("document.getElementById('answer').replaceChildren(); document.querySelector('#try-form .primary').click()")
	p.until("document.getElementById('answer').childNodes.length > 0")
	return eval[string](p, "document.getElementById('answer').innerText")
}

func (p *tab) pick(field, way string) {
	p.t.Helper()
	p.exec(fmt.Sprintf("document.querySelector('[name=input-%s][value=%s]').click()", field, way))
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
