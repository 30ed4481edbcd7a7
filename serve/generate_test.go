package serve

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/safetensors"
)

// letters are the tokens of the models below: 26 letters, a space, and others.
const letters = "abcdefghijklmnopqrstuvwxyz é€"

// writeTokenizer writes a tokenizer whose tokens are these characters.
func writeTokenizer(t testing.TB, path string) {
	t.Helper()
	vocab := map[string]int{}
	for i, c := range []rune(letters + "012") {
		if c == ' ' {
			c = '_'
		}
		vocab[string(c)] = i
	}
	file := map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{}, "post_processor": nil,
		"normalizer":    map[string]any{"type": "Replace", "pattern": map[string]any{"String": " "}, "content": "_"},
		"pre_tokenizer": nil,
		"decoder":       map[string]any{"type": "Sequence", "decoders": []any{map[string]any{"type": "Replace", "pattern": map[string]any{"String": "_"}, "content": " "}, map[string]any{"type": "Fuse"}}},
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []string{}},
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeAlphabet writes a model of a context of 12 tokens whose likeliest token behind each
// letter is the next letter, and behind z the space.
func writeAlphabet(t testing.TB, dir, extra string) {
	t.Helper()
	path := filepath.Join(dir, "alphabet", "1")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	const n = 32
	var table []byte
	for i := range n {
		for j := range n { // the next one is the likeliest, and then those after it
			table = binary.LittleEndian.AppendUint32(table, math.Float32bits(float32(-((j - i - 1 + n) % n))))
		}
	}
	f, err := os.Create(filepath.Join(path, "weights.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := safetensors.Write(f, []safetensors.Tensor{{Name: "table", DType: safetensors.F32, Shape: []int64{n, n}, Data: table}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	program := "program @alphabet {\n  %ids = parameter \"ids\" : i64[1,12]\n  %mask = parameter \"mask\" : f32[1,12]\n  %table = parameter \"table\" : f32[32,32]\n" +
		"  %e = embedding(%table, %ids)\n  %m = unsqueeze(%mask, 2)\n  %y = mul(%e, %m)\n  return %y\n}\n"
	for name, text := range map[string]string{"1/model.lir": program, "config.pbtxt": `parameters { key: "tokenizer" value { string_value: "tokenizer.json" } }` + "\n" + extra} {
		if err := os.WriteFile(filepath.Join(dir, "alphabet", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeTokenizer(t, filepath.Join(dir, "alphabet", "tokenizer.json"))
}

// A model with a tokenizer continues texts: greedily, by chance, up to a text, to its own
// end, or as far as its context goes.
func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	writeAlphabet(t, dir, `parameters { key: "end_tokens" value { string_value: "26" } }`)
	hs := start(t, Options{Models: dir})
	for _, c := range []struct {
		body, want string
		code       int
	}{
		{`{"text_input":"ab"}`, `"text_output":"cdefghijkl","finish_reason":"length","input_tokens":2,"output_tokens":10`, 200},
		{`{"id":"7","text_input":"ab","max_tokens":3}`, `{"id":"7","model_name":"alphabet","model_version":"1","text_output":"cde",`, 200},
		{`{"text_input":"ab","parameters":{"max_tokens":3}}`, `"text_output":"cde","finish_reason":"length","input_tokens":2,"output_tokens":3`, 200},
		{`{"text_input":"ab","exclude_input_in_output":false,"max_tokens":3}`, `"text_output":"abcde"`, 200},
		{`{"text_input":"x"}`, `"text_output":"yz","finish_reason":"stop","input_tokens":1,"output_tokens":3`, 200},
		{`{"text_input":"ab","stop":"ef"}`, `"text_output":"cd","finish_reason":"stop"`, 200},
		{`{"text_input":"ab","stop_words":["zz","g","fg"]}`, `"text_output":"cde","finish_reason":"stop"`, 200},
		{`{"text_input":"a","top_k":1,"max_tokens":4}`, `"text_output":"bcde"`, 200},
		{`{"text_input":"a","top_p":0.01,"temperature":2,"max_tokens":4}`, `"text_output":"bcde"`, 200},
		{`{"text_input":"a","temperature":0,"seed":3,"max_tokens":4}`, `"text_output":"bcde"`, 200},
		{`{"text_input":" é","max_tokens":2}`, `"text_output":"€0"`, 200},
		{`{"text_input":""}`, "no token", 400},
		{`{"text_input":"abcdefghijkl"}`, "context has 12", 400},
		{`{}`, "no text_input", 400},
		{`{"text_input":7}`, "expected a string", 400},
		{`{"text_input":"a","max_tokens":0}`, "max_tokens: expected", 400},
		{`{"text_input":"a","temperature":-1}`, "temperature: expected", 400},
		{`{"text_input":"a","top_p":1.5}`, "top_p: expected", 400},
		{`{"text_input":"a","top_k":1.5}`, "top_k: expected", 400},
		{`{"text_input":"a","stop":[""]}`, "empty text", 400},
		{`{"text_input":"a","beams":2}`, `no parameter \"beams\"`, 400},
		{`{"text_input":"a"`, "JSON", 400},
	} {
		if code, answer := ask(t, "POST", hs.URL+"/v2/models/alphabet/generate", c.body); code != c.code || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.body, code, answer, c.code, c.want)
		}
	}
	texts := map[string]bool{}
	for seed := range 20 {
		body := fmt.Sprintf(`{"text_input":"a","temperature":5,"top_k":3,"seed":%d,"max_tokens":5}`, seed)
		_, first := ask(t, "POST", hs.URL+"/v2/models/alphabet/versions/1/generate", body)
		if _, again := ask(t, "POST", hs.URL+"/v2/models/alphabet/generate", body); again != first {
			t.Errorf("seed %d: %s, and then %s", seed, first, again)
		}
		texts[first] = true
	}
	if len(texts) < 5 {
		t.Errorf("20 seeds gave %d texts", len(texts))
	}
}

// The pieces of a stream are the text that comes in one answer; what may be the beginning
// of a text to stop at is held back.
func TestGenerateStream(t *testing.T) {
	dir := t.TempDir()
	writeAlphabet(t, dir, "")
	writeProgram(t, dir, "m", 1, "2")
	hs := start(t, Options{Models: dir})
	for stop, want := range map[string][]string{
		`"zz"`: {"b", "c", "d"}, `"cx"`: {"b", "cd"}, `"d"`: {"b", "c"}, `["cdx","cde"]`: {"b", "cd"},
	} {
		code, answer := ask(t, "POST", hs.URL+"/v2/models/alphabet/generate_stream", fmt.Sprintf(`{"text_input":"a","max_tokens":3,"stop":%s}`, stop))
		if code != http.StatusOK {
			t.Fatal(code, answer)
		}
		var got []string
		reason := ""
		for event := range strings.SplitSeq(strings.TrimSuffix(answer, "\n\n"), "\n\n") {
			var e struct {
				Text   string `json:"text_output"`
				Reason string `json:"finish_reason"`
			}
			text, ok := strings.CutPrefix(event, "data: ")
			if err := json.Unmarshal([]byte(text), &e); err != nil || !ok || reason != "" {
				t.Fatalf("%q: %v", event, err)
			}
			if reason = e.Reason; reason == "" {
				got = append(got, e.Text)
			}
		}
		if strings.Join(got, "|") != strings.Join(want, "|") || reason == "" {
			t.Errorf("stop %s: %q, %q, want %q", stop, got, reason, want)
		}
	}
	for path, want := range map[string]int{"alphabet/generate_stream": 400, "m/generate_stream": 501, "none/generate": 404} {
		if code, answer := ask(t, "POST", hs.URL+"/v2/models/"+path, `{"text_input":""}`); code != want || !strings.HasPrefix(answer, `{"error":`) {
			t.Errorf("%s: %d %s, want %d", path, code, answer, want)
		}
	}
}

// What a package computes along a growing context is what it computes of the whole at
// once: each token is the likeliest behind those before it.
func TestGenerateGrowingContext(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lm", "1")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/causal_lm.pt2")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "model.pt2"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lm", "config.pbtxt"), []byte(`parameters { key: "tokenizer" value { string_value: "tokenizer.json" } }`), 0o600); err != nil {
		t.Fatal(err)
	}
	writeTokenizer(t, filepath.Join(dir, "lm", "tokenizer.json"))
	hs := start(t, Options{Models: dir})
	code, answer := ask(t, "POST", hs.URL+"/v2/models/lm/generate", `{"text_input":"hello world","max_tokens":20,"exclude_input_in_output":false}`)
	var out struct {
		Text string `json:"text_output"`
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || code != http.StatusOK {
		t.Fatal(code, answer)
	}
	all := []rune(letters + "012")
	var ids []string
	for _, r := range out.Text {
		ids = append(ids, fmt.Sprint(slices.Index(all, r)))
	}
	if len(ids) != len("hello world")+20 {
		t.Fatalf("%d tokens: %q", len(ids), out.Text)
	}
	_, answer = ask(t, "POST", hs.URL+"/v2/models/lm/infer", fmt.Sprintf(`{"inputs":[{"name":"INPUT__0","shape":[1,%d],"datatype":"INT64","data":[%s]}]}`, len(ids), strings.Join(ids, ",")))
	var logits struct{ Outputs []struct{ Data []float64 } }
	if err := json.Unmarshal([]byte(answer), &logits); err != nil {
		t.Fatal(err, answer)
	}
	seen := map[int]bool{}
	for at := len("hello world"); at < len(ids); at++ {
		row := logits.Outputs[0].Data[(at-1)*32 : at*32]
		best := 0
		for i, v := range row {
			if v > row[best] {
				best = i
			}
		}
		seen[best] = true
		if fmt.Sprint(best) != ids[at] {
			t.Errorf("token %d is %s, the likeliest %d", at, ids[at], best)
		}
	}
	if len(seen) < 2 {
		t.Errorf("only %d token ever comes", len(seen))
	}
}

// What a configuration says of texts is checked when a model is loaded.
func TestGenerateConfiguration(t *testing.T) {
	for extra, want := range map[string]string{
		`parameters { key: "end_tokens" value { string_value: "32" } }`:      "end_tokens",
		`parameters { key: "end_tokens" value { string_value: "</s>" } }`:    "end_tokens",
		`parameters { key: "generate_mask" value { string_value: "none" } }`: "neither the tokens nor the mask",
		`parameters { key: "generate_logits" value { string_value: "x" } }`:  "no output",
	} {
		dir := t.TempDir()
		writeAlphabet(t, dir, extra)
		s, err := New(Options{Models: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", extra, err, want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	writeProgram(t, dir, "scale", 1, "2")
	writeTokenizer(t, filepath.Join(dir, "scale", "tokenizer.json"))
	for config, want := range map[string]string{
		`parameters { key: "tokenizer" value { string_value: "tokenizer.json" } }`:    `input "x"`,
		`parameters { key: "tokenizer" value { string_value: "../tokenizer.json" } }`: "leaves the model's folder",
		`parameters { key: "tokenizer" value { string_value: "none.json" } }`:         "none.json",
		`parameters { key: "end_tokens" value { string_value: "1" } }`:                "end_tokens needs tokenizer",
	} {
		if err := os.WriteFile(filepath.Join(dir, "scale", "config.pbtxt"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := New(Options{Models: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
