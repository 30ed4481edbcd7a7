package pagetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/format"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/loris-ml/loris/serve"
)

// The table shows models, and the numbers of requests as they come.
func TestLive(t *testing.T) {
	url := start(t, serve.Options{})
	p := open(t, url, 1280, 900)
	p.until("document.getElementById('status').textContent === 'ready'")
	if got := eval[string](p, "document.getElementById('model-table').innerText"); !strings.Contains(got, "double") || !strings.Contains(got, "picture") {
		t.Error(got)
	}
	p.choose("double")
	for range 7 {
		post(t, url+"/v2/models/double/infer", `{"inputs":[{"name":"x","shape":[2,3],"datatype":"FP32","data":[1,2,3,4,5,6]}]}`)
	}
	p.until("document.querySelector('#model-table tbody tr td[data-label=Answered]').textContent === '7'")
	p.until("document.querySelector('#batches meter').value === 7")
	p.until("document.getElementById('chart-rate').getAttribute('aria-label').startsWith('requests/s ')")
	if n := eval[int](p, "document.querySelectorAll('.charts canvas').length"); n != 3 {
		t.Errorf("%d charts", n)
	}
	if got := eval[string](p, "document.querySelector('#batches li').innerText"); !strings.Contains(got, "2 rows") {
		t.Error(got)
	}
}

// The form sends what was typed, and shows the same request as code, which does what it says.
func TestNumbers(t *testing.T) {
	url := start(t, serve.Options{})
	p := open(t, url, 1280, 900)
	p.choose("double")
	p.exec("document.querySelector('#inputs input[type=number]').value = 2; document.querySelector('#input-0-numbers').value = '1, 2.5, [3 4] -5 6'")
	if got := p.run(); !strings.Contains(got, "2\t5\t6") || !strings.Contains(got, "8\t-10\t12") {
		t.Error(got)
	}
	p.exec("document.getElementById('code').open = true")
	code := eval[string](p, "document.getElementById('sample').textContent")
	_, body, _ := strings.Cut(code, "-d '")
	if got := post(t, url+"/v2/models/double/infer", strings.TrimSuffix(body, "'")); !strings.Contains(got, `"data":[2,5,6,8,-10,12]`) || !strings.Contains(code, url) {
		t.Errorf("%s\nanswers %s", code, got)
	}
	p.exec("document.querySelector('[name=language][value=go]').click()")
	code = eval[string](p, "document.getElementById('sample').textContent")
	if formatted, err := format.Source([]byte(code)); err != nil || string(formatted) != code || !strings.Contains(code, `client.FromSlice("x", []float32{1, 2.5, 3, 4, -5, 6}, 2, 3)`) {
		t.Errorf("%v\n%s\n%s", err, code, formatted)
	}
	p.exec("document.querySelector('[name=language][value=python]').click()")
	if code = eval[string](p, "document.getElementById('sample').textContent"); !strings.Contains(code, `np.array([1, 2.5, 3, 4, -5, 6], np.float32).reshape(2, 3)`) {
		t.Error(code)
	}
	p.exec("document.getElementById('view').value = 'top'")
	if got := p.run(); !strings.Contains(got, "2\tlemur\t6.000000") {
		t.Error(got)
	}
	for typed, want := range map[string]string{"1,,x": "x: element 1: x is no number", "1 2 3 4 5 6 7": "7 elements are given for 6", "": "give a number"} {
		p.exec(fmt.Sprintf("document.querySelector('#input-0-numbers').value = %q", typed))
		if got := p.run(); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", typed, got, want)
		}
	}
	for _, way := range []string{"zeros", "random"} {
		p.pick("0", way)
		p.exec("document.getElementById('view').value = 'table'")
		if got := p.run(); !strings.Contains(got, "FP32 [2, 3]") {
			t.Error(way, got)
		}
	}
}

// A model that is chosen again while its form is on the way does not lose what is typed when the first
// of the two arrives.
func TestChosenTwice(t *testing.T) {
	url := start(t, serve.Options{})
	p := open(t, url, 1280, 900)
	p.choose("double")
	p.exec(`window.held = []; const real = window.fetch; window.fetch = (...a) => /^v2.*\/versions\/1$/.test(a[0])
		? new Promise((done) => window.held.push(() => done(real(...a)))) : real(...a)`)
	click := "document.querySelector('[data-key^=\"double/\"]').click()"
	p.exec(click + ";" + click)
	p.until("window.held.length === 2")
	p.exec("window.held[0]()")
	time.Sleep(200 * time.Millisecond)
	if eval[bool](p, "!document.getElementById('try').hidden") {
		t.Fatal("the form of the first choice is shown, which the second will replace")
	}
	p.exec("window.held[1]()")
	p.until("!document.getElementById('try').hidden")
}

// A picture becomes a normalised tensor, channels first, and an answer a picture; long data of code
// is in files.
func TestPictures(t *testing.T) {
	url := start(t, serve.Options{})
	p := open(t, url, 1280, 900)
	p.choose("picture")
	red := image.NewRGBA(image.Rect(0, 0, 40, 40))
	for i := range 40 * 40 {
		red.Set(i%40, i/40, color.RGBA{255, 0, 0, 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, red); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "red.png")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p.pick("0", "image")
	do(p, chromedp.SetUploadFiles("#input-0-file", []string{file}))
	p.exec("document.querySelector('[aria-label=\"mean of each channel\"]').value = '0.5, 0.25, 0'; document.querySelector('[aria-label=\"standard deviation of each channel\"]').value = '0.5, 0.5, 0.5'")
	if got := p.run(); !strings.Contains(got, "0.5\t0.5") || !strings.Contains(got, "-0.25\t-0.25") || !strings.Contains(got, "FP32 [1, 3, 16, 16]") {
		t.Error(got)
	}
	p.exec("document.getElementById('view').value = 'image'")
	p.run()
	if got := eval[string](p, "document.querySelector('canvas.output').getAttribute('aria-label')"); got != "16 by 16 pixels, from -0.25 to 0.5" {
		t.Error(got)
	}
	p.exec("document.getElementById('code').open = true")
	if got := eval[string](p, "document.getElementById('files').innerText"); !strings.Contains(got, "request.bin") {
		t.Error(got)
	}
	p.pick("0", "file")
	do(p, chromedp.SetUploadFiles("#input-0-file", []string{file}))
	if got := p.run(); !strings.Contains(got, "expected 768 elements") {
		t.Error(got)
	}
}

// The elements that the page encodes are those that it decodes, of all datatypes.
func TestDatatypes(t *testing.T) {
	p := open(t, start(t, serve.Options{}), 800, 600)
	for _, c := range []struct{ datatype, values, want string }{
		{"BOOL", `["true", 0, "1", "false"]`, "true,false,true,false"},
		{"UINT8", `[0, "255"]`, "0,255"},
		{"INT8", `["-128", 127]`, "-128,127"},
		{"UINT16", `["65535"]`, "65535"},
		{"INT32", `["-2147483648"]`, "-2147483648"},
		{"INT64", `["-9223372036854775808", "9007199254740993"]`, "-9223372036854775808,9007199254740993"},
		{"UINT64", `["18446744073709551615"]`, "18446744073709551615"},
		{"FP16", `[1, -2.5, 65504, 65520, 2**-24, 2**-26, 1 + 2**-11, 1 + 3 * 2**-11, -Infinity]`, "1,-2.5,65504,Infinity,5.960464477539063e-8,0,1,1.001953125,-Infinity"},
		{"BF16", `[1, -3.140625, 1e39, 1 + 2**-8]`, "1,-3.140625,Infinity,1"},
		{"FP32", `["0.1", "-1e-45", "NaN"]`, "0.1,-1.4013e-45,NaN"},
		{"FP64", `["0.1", 5e-324]`, "0.1,5e-324"},
	} {
		script := fmt.Sprintf("import('./page/tensor.js').then(m => m.decode(m.encode(%s, '%s'), '%[2]s').map(v => m.text(v, '%[2]s')).join())", c.values, c.datatype)
		if got := do(p, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise)); got != c.want {
			t.Errorf("%s: %s, want %s", c.datatype, got, c.want)
		}
	}
	for datatype, value := range map[string]string{"INT8": "128", "UINT8": "-1", "BOOL": "2", "INT32": "1.5", "FP32": `"one"`} {
		script := fmt.Sprintf("import('./page/tensor.js').then(m => m.encode([%s], '%s')).then(() => 'taken', (e) => e.message)", value, datatype)
		if got := do(p, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise)); !strings.HasPrefix(got, "element 0") {
			t.Errorf("%s of %s: %s", value, datatype, got)
		}
	}
}

// Models are loaded and unloaded, and sets of weights activated, by those who may; others are told.
func TestControl(t *testing.T) {
	url := start(t, serve.Options{AllowWeightUpdate: true, Allow: []string{"weights", "model-repository"}})
	if got := post(t, url+"/v2/models/picture/weights", `{"parameters":{"source":"file:other.safetensors","weight_version":"brighter","activate":false}}`); !strings.Contains(got, "brighter") {
		t.Fatal(got)
	}
	p := open(t, url, 1280, 900)
	p.choose("double")
	p.until("document.querySelector('#actions').innerText.includes('Unload')")
	p.exec("[...document.querySelectorAll('#actions button')].at(-1).click()")
	p.until("document.querySelector('#detail-title').textContent.startsWith('double') && document.querySelector('tr.chosen .badge').textContent === 'unavailable'")
	p.exec("document.querySelector('#actions button').click()")
	p.until("document.querySelector('tr.chosen .badge').textContent === 'ready'")
	p.choose("picture")
	p.until("!document.getElementById('weights').hidden && document.getElementById('weights').innerText.includes('brighter')")
	p.exec("document.querySelector('[aria-label=\"Activate brighter\"]').click()")
	p.until("document.querySelector('[aria-label=\"Activate initial\"]') !== null")

	closed := open(t, start(t, serve.Options{}), 1280, 900)
	closed.choose("double")
	closed.exec("[...document.querySelectorAll('#actions button')].at(-1).click()")
	closed.until("!document.getElementById('message').hidden && document.getElementById('message').textContent.includes('the scope model-repository is closed')")
}

// A server that asks for tokens shows nothing before it gets one.
func TestToken(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("secret metadata,statistics,inference\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, start(t, serve.Options{TokenFile: tokens}), 1280, 900)
	p.until("document.getElementById('status').textContent === 'access needed'")
	if n := eval[int](p, "document.querySelectorAll('#model-table tbody tr').length"); n != 0 {
		t.Errorf("%d models are shown", n)
	}
	p.exec("document.getElementById('access').open = true")
	do(p, chromedp.SendKeys("#token", "secret\r"))
	p.until("document.getElementById('status').textContent === 'ready'")
	p.choose("double")
	if got := p.run(); !strings.Contains(got, "FP32") {
		t.Error(got)
	}
}

// A model is chosen and run by keys alone; the table, which is made anew each second, keeps the focus.
func TestKeyboard(t *testing.T) {
	p := open(t, start(t, serve.Options{}), 1280, 900)
	p.choose("double")
	p.exec("document.body.focus(); document.activeElement.blur()")
	focus := func(condition string) {
		t.Helper()
		for range 40 {
			if eval[bool](p, "(e => ("+condition+") === true)(document.activeElement)") {
				return
			}
			do(p, chromedp.KeyEvent("\t"))
		}
		t.Fatalf("the key Tab never comes to %s", condition)
	}
	focus("e.dataset.key?.startsWith('picture/')")
	p.exec("window.rows = document.querySelector('#model-table tbody tr')")
	p.until("document.querySelector('#model-table tbody tr') !== window.rows")
	if !eval[bool](p, "document.activeElement.dataset.key?.startsWith('picture/') === true") {
		t.Error("the focus is lost when the numbers change")
	}
	do(p, chromedp.KeyEvent("\r"))
	p.until("document.getElementById('detail-title').textContent.startsWith('picture') && document.activeElement.id === 'detail-title' && !document.getElementById('try').hidden")
	focus("e.matches('#try-form .primary')")
	do(p, chromedp.KeyEvent("\r"))
	p.until("document.querySelector('#answer table') !== null")
	focus("e.matches('#code summary')")
}

// Everything that can be operated has a name, and nothing is wider than a phone.
func TestPhoneAndNames(t *testing.T) {
	p := open(t, start(t, serve.Options{AllowWeightUpdate: true, Allow: []string{"weights"}}), 360, 740)
	p.choose("picture")
	p.run()
	p.pick("0", "image")
	p.exec("document.querySelectorAll('details').forEach(d => { d.open = true })")
	p.until("document.getElementById('sample').textContent !== ''")
	nameless := eval[[]string](p, `[...document.querySelectorAll("button, input, select, textarea, summary, table, [role=img], section, fieldset, canvas.output")].filter((e) => {
		const name = e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") && document.getElementById(e.getAttribute("aria-labelledby"))?.textContent) ||
			[...(e.labels ?? [])].map((l) => l.textContent.trim()).join("") || e.caption?.textContent || e.querySelector?.("legend")?.textContent || (e.matches("button, summary") && e.textContent.trim());
		return !name;
	}).map((e) => e.outerHTML.slice(0, 120))`)
	if len(nameless) > 0 {
		t.Errorf("without a name: %q", nameless)
	}
	p.until("!document.getElementById('weights').hidden && document.getElementById('tensors').tBodies[0].rows.length > 0")
	for _, width := range []int64{360, 768, 1280} {
		do(p, chromedp.EmulateViewport(width, 740))
		// A chart takes its new size a frame after the page.
		wide := func() int64 { return eval[int64](p, "document.scrollingElement.scrollWidth") }
		for deadline := time.Now().Add(5 * time.Second); wide() > width && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
		}
		hidden := "[...document.querySelectorAll('.cards')].filter((e) => e.parentElement.scrollWidth > e.parentElement.clientWidth).map((e) => e.caption.textContent)"
		if got := eval[[]string](p, hidden); width < 640 && len(got) > 0 {
			t.Errorf("at a width of %d tables have to be pushed about: %q", width, got)
		}
		if got := wide(); got > width {
			t.Errorf("at a width of %d the page has %d: %s", width, got, eval[string](p, fmt.Sprintf("[...document.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > %d && !e.closest('.scroll, pre')).map(e => e.tagName + '#' + e.id + '.' + e.className).join(' ')", width)))
		}
	}
}

// What a model is stands there: its files with their digests, what they were compiled for, inputs,
// outputs and constants.
func TestPackage(t *testing.T) {
	fixture := filepath.FromSlash("../../aoti/testdata/dynamic_batch.pt2")
	data, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, start(t, serve.Options{Files: []string{fixture}}), 1280, 900)
	text := func(id string) string {
		t.Helper()
		return eval[string](p, fmt.Sprintf("document.getElementById('%s').innerText", id))
	}
	check := func(id string, want ...string) {
		t.Helper()
		got := strings.Join(strings.Fields(text(id)), " ")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q: %s", id, w, got)
			}
		}
	}
	p.choose("dynamic_batch")
	p.until("!document.getElementById('package').hidden")
	check("facts", fmt.Sprintf("dynamic_batch.pt2 %.1f KiB, sha256 %x", float64(len(data))/1024, sha256.Sum256(data)), "Compiled for cpu, linux, x86_64", "AVX2", "PyTorch 2.15", "Rows of a run up to 64")
	check("tensors", "input arg4_1 FP32 [s31 in 0..1024, 24]", "output output0 FP32 [rows from 0, 6]")
	p.exec("document.querySelector('#constants summary').click()")
	check("constants", "3 constants, 3.9 KiB", "0.0.weight float32 [32, 24] 3 KiB")
	p.choose("picture")
	p.until("!document.getElementById('package').hidden && document.getElementById('facts').innerText.includes('lazy program')")
	p.exec("document.querySelector('#constants summary').click()")
	check("facts", "weights.safetensors", "Instructions 3")
	check("constants", "1 constant, 4 B", "b F32 [1] 4 B")
	check("tensors", "input x FP32 [1, 3, 16, 16]", "output out0 FP32 [1, 3, 16, 16]")
}

// Requests that failed are listed with their reasons, those with one reason once.
func TestFailures(t *testing.T) {
	url := start(t, serve.Options{})
	p := open(t, url, 1280, 900)
	p.choose("double")
	if !eval[bool](p, "document.getElementById('failures').hidden") {
		t.Error("failures are shown where there are none")
	}
	for range 2 {
		post(t, url+"/v2/models/double/infer", `{"inputs":[{"name":"y","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}`)
	}
	post(t, url+"/v2/models/double/infer", `{"inputs":[{"name":"x","shape":[1,3],"datatype":"INT8","data":[1,2,3]}]}`)
	p.until("document.querySelectorAll('#failures tbody tr').length === 2")
	got := eval[[]string](p, "[...document.querySelectorAll('#failures tbody tr')].map((r) => r.innerText)")
	if !strings.Contains(got[0], "1\tinvalid argument") || !strings.Contains(got[0], "INT8") || !strings.Contains(got[1], "2\tinvalid argument") || !strings.Contains(got[1], `there is no input "y"`) {
		t.Errorf("%q", got)
	}
}

// A model that was unloaded to keep within the memory budget is shown as idle, looking at it does not
// load it, and running it does.
func TestIdle(t *testing.T) {
	p := open(t, start(t, serve.Options{MemoryBudget: 200, AllowWeightUpdate: true, Allow: []string{"weights"}}), 1280, 900)
	badge := func(name string) string {
		return fmt.Sprintf("document.querySelector('[data-key^=\"%s/\"]').closest('tr').querySelector('.badge').textContent", name)
	}
	p.choose("double")
	p.until("!document.getElementById('package').hidden && document.getElementById('reason').textContent.startsWith('idle: unloaded')")
	time.Sleep(1200 * time.Millisecond) // an event later
	if got := eval[[]string](p, "["+badge("double")+", "+badge("picture")+"]"); fmt.Sprint(got) != "[idle ready]" {
		t.Fatal(got)
	}
	if got := p.run(); !strings.Contains(got, "FP32 [") {
		t.Error(got)
	}
	p.until(badge("double") + " === 'ready' && " + badge("picture") + " === 'idle'")
	if got := eval[string](p, "document.getElementById('answer').textContent"); !strings.Contains(got, "FP32 [") {
		t.Errorf("when the model woke the answer became %q", got)
	}
}

// LORIS_SCREENSHOT names a file for the picture of the page that the documentation has.
func TestScreenshot(t *testing.T) {
	file := os.Getenv("LORIS_SCREENSHOT")
	if file == "" {
		t.Skip("LORIS_SCREENSHOT names no file")
	}
	url := start(t, serve.Options{AllowWeightUpdate: true, Allow: []string{"weights"}})
	p := open(t, url, 1100, 900)
	p.choose("double")
	for i := range 300 {
		n := 1 + i*i%8
		post(t, url+"/v2/models/double/infer", fmt.Sprintf(`{"inputs":[{"name":"x","shape":[%d,3],"datatype":"FP32","data":[1%s]}]}`, n, strings.Repeat(",2", 3*n-1)))
		time.Sleep(time.Duration(20+i%50) * time.Millisecond)
	}
	p.exec("document.querySelector('#inputs input[type=number]').value = 2; document.querySelector('#input-0-numbers').value = '1, 2.5, 3, 4, -5, 6'")
	p.run()
	post(t, url+"/v2/models/double/infer", `{"inputs":[{"name":"x","shape":[1,3],"datatype":"INT8","data":[1,2,3]}]}`)
	p.until("!document.getElementById('failures').hidden")
	p.exec("document.getElementById('code').open = true; scrollTo(0, 0)")
	if err := os.WriteFile(file, do(p, chromedp.FullScreenshot(100)), 0o600); err != nil {
		t.Fatal(err)
	}
}
