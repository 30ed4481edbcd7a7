package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loris-ml/loris/safetensors"
)

// What model_warmup says is run before the model is served, and a model that fails in it is not.
func TestModelWarmup(t *testing.T) {
	const zeros = `inputs { key: "x" value { data_type: TYPE_FP32 dims: [4, 2] zero_data: true } }`
	for _, c := range []struct{ name, config, want string }{
		{"zeros", `model_warmup [{ name: "z" count: 3 ` + zeros + ` }]`, ""},
		{"random, without the rows", `max_batch_size: 4 model_warmup [{ name: "r" batch_size: 2 inputs { key: "x" value { data_type: TYPE_FP32 dims: [2] random_data: true } } }]`, ""},
		{"file", `model_warmup [{ name: "f" inputs { key: "x" value { data_type: TYPE_FP32 dims: [4, 2] input_data_file: "ones" } } }]`, ""},
		{"no such file", `model_warmup [{ name: "f" inputs { key: "x" value { data_type: TYPE_FP32 dims: [4, 2] input_data_file: "twos" } } }]`, `model_warmup "f": `},
		{"leaves the folder", `model_warmup [{ name: "f" inputs { key: "x" value { data_type: TYPE_FP32 dims: [4, 2] input_data_file: "../config.pbtxt" } } }]`, "leaves the folder"},
		{"another shape", `model_warmup [{ name: "s" inputs { key: "x" value { data_type: TYPE_FP32 dims: [3, 3] zero_data: true } } }]`, `model_warmup "s": input "x": expected shape`},
		{"another name", `model_warmup [{ name: "n" inputs { key: "y" value { data_type: TYPE_FP32 dims: [4, 2] zero_data: true } } }]`, `there is no input "y"`},
		{"nothing to fill in", `model_warmup [{ name: "n" inputs { key: "x" value { data_type: TYPE_FP32 dims: [4, 2] } } }]`, "zero_data, random_data or input_data_file"},
		{"rows of a model without", `model_warmup [{ name: "b" batch_size: 2 ` + zeros + ` }]`, "max_batch_size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeProgram(t, dir, "m", 1, "2")
			writeFile(t, filepath.Join(dir, "m", "config.pbtxt"), c.config)
			writeFile(t, filepath.Join(dir, "m", "warmup", "ones"), strings.Repeat("\x00\x00\x80\x3f", 8))
			s, err := New(Options{Models: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(context.Background())
			err = s.Load(t.Context())
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || s.repository.Ready() {
					t.Errorf("%v, ready %v; want %s", err, s.repository.Ready(), c.want)
				}
				return
			}
			if err != nil || !s.repository.Ready() {
				t.Fatal(err)
			}
			stats, err := s.repository.Statistics("m", "")
			if err != nil || stats[0].ExecutionCount != 0 {
				t.Errorf("runs that warm up are counted: %v, %v", stats, err)
			}
		})
	}
}

// An output may be asked for as its greatest elements, by REST as numbers and as bytes.
func TestClassification(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	writeFile(t, filepath.Join(dir, "m", "config.pbtxt"), `output [{ name: "out0" data_type: TYPE_FP32 label_filename: "labels.txt" }]`)
	writeFile(t, filepath.Join(dir, "m", "labels.txt"), "cat\ndog\n")
	hs := start(t, Options{Models: dir})
	request := func(classes string, parameter string) string {
		return `{"inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[1,2,4,3]}],"outputs":[{"name":"out0","parameters":{"classification":` + classes + parameter + `}}]}`
	}
	for classes, want := range map[string]string{
		"1": `"datatype":"BYTES","shape":[2,1],"data":["4.000000:1:dog","8.000000:0:cat"]`,
		"9": `"shape":[2,2],"data":["4.000000:1:dog","2.000000:0:cat","8.000000:0:cat","6.000000:1:dog"]`,
		"0": `"datatype":"FP32","shape":[2,2],"data":[2,4,8,6]`,
	} {
		if code, text := ask(t, "POST", hs.URL+"/v2/models/m/infer", request(classes, "")); code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", classes, code, text, want)
		}
	}
	if code, text := ask(t, "POST", hs.URL+"/v2/models/m/infer", request("1", `,"binary_data":true`)); code != 200 || !strings.HasSuffix(text, "\x0e\x00\x00\x004.000000:1:dog\x0e\x00\x00\x008.000000:0:cat") {
		t.Errorf("%d %q", code, text)
	}
	for _, classes := range []string{"-1", `"two"`, "1.5"} {
		if code, text := ask(t, "POST", hs.URL+"/v2/models/m/infer", request(classes, "")); code != 400 || !strings.Contains(text, "classification") {
			t.Errorf("%s: %d %s", classes, code, text)
		}
	}
	_, text := ask(t, "GET", hs.URL+"/v2", "")
	if !strings.Contains(text, `"classification"`) {
		t.Error(text)
	}
	for _, c := range []struct{ file, labels, want string }{{"none.txt", "", "none.txt"}, {"../labels.txt", "", "leaves the folder"}} {
		writeFile(t, filepath.Join(dir, "bad", "1", "model.lir"), "program @p {\n  %x = parameter \"x\" : f32[2]\n  return %x\n}\n")
		writeFile(t, filepath.Join(dir, "bad", "config.pbtxt"), `output [{ name: "out0" label_filename: "`+c.file+`" }]`)
		s, err := New(Options{Models: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Load(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.file, err)
		}
		s.Close(context.Background())
	}
}

// A load whose only news are weights swaps them in the model that runs; requests meanwhile get one
// set or the other.
func TestLoadOfWeightsSwaps(t *testing.T) {
	one := safetensors.Tensor{Name: "one", DType: safetensors.F32, Shape: []int64{2}, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f}}
	more := safetensors.Tensor{Name: "more", DType: safetensors.F32, Shape: []int64{2}, Data: one.Data}
	for _, updatable := range []bool{false, true} {
		t.Run(fmt.Sprint("weights API ", updatable), func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "m", "1", "model.lir"), affine)
			tick := 0
			put := func(data []byte) {
				t.Helper()
				path := filepath.Join(dir, "m", "1", "weights.safetensors")
				writeFile(t, path, string(data))
				tick++
				if err := os.Chtimes(path, time.Time{}, time.Unix(int64(1e9+tick), 0)); err != nil {
					t.Fatal(err)
				}
			}
			put(weightsFile(t, 0, one))
			hs := start(t, Options{Models: dir, Allow: []string{"model-repository", "weights"}, AllowWeightUpdate: updatable})
			load := func() (int, string) { return ask(t, "POST", hs.URL+"/v2/repository/models/m/load", "") }
			answer := func() string {
				_, text := ask(t, "POST", hs.URL+"/v2/models/m/infer", onesBody)
				_, data, _ := strings.Cut(text, `"data":`)
				return data
			}
			// A model that is opened anew has answered nothing.
			answered := func() string {
				_, text := ask(t, "GET", hs.URL+"/v2/models/m/stats", "")
				_, count, _ := strings.Cut(text, `"success":{"count":`)
				return strings.SplitN(count, ",", 2)[0]
			}
			for n := range 3 {
				put(weightsFile(t, n%2, one))
				if code, text := load(); code != 200 {
					t.Fatal(code, text)
				}
				if got, want := answer(), []string{"[2,2]", "[3,3]"}[n%2]; !strings.HasPrefix(got, want) {
					t.Errorf("after load %d: %s, want %s", n, got, want)
				}
			}
			if n := answered(); n != "3" {
				t.Errorf("%s answers are counted after 3: the model was opened anew", n)
			}
			put([]byte("no safetensors"))
			if code, text := load(); code == 200 || !strings.HasPrefix(answer(), "[2,2]") {
				t.Errorf("%d %s; %s", code, text, answer())
			}
			if got := index(t, hs.URL); got != "m/1 READY" {
				t.Error(got)
			}
			// Other tensors than before are another model.
			put(weightsFile(t, 1, one, more))
			if code, text := load(); code != 200 || !strings.HasPrefix(answer(), "[3,3]") {
				t.Errorf("%d %s; %s", code, text, answer())
			}
			if n := answered(); n != "1" {
				t.Errorf("%s answers are counted: the model was not opened anew", n)
			}
		})
	}
}

// The settings of the log are one level: what is off turns off what is less severe.
func TestLogSettings(t *testing.T) {
	dir := t.TempDir()
	writeProgram(t, dir, "m", 1, "2")
	for _, c := range []struct {
		body  string
		code  int
		level slog.Level
	}{
		{`{}`, 200, slog.LevelInfo},
		{`{"log_verbose_level":1}`, 200, slog.LevelDebug},
		{`{"log_info":false}`, 200, slog.LevelWarn},
		{`{"log_warning":false}`, 200, slog.LevelError},
		{`{"log_error":false}`, 200, slog.LevelError + 4},
		{`{"log_info":false,"log_warning":false,"log_error":true,"log_verbose_level":0}`, 200, slog.LevelError},
		{`{"log_info":true,"log_warning":true,"log_error":true,"log_verbose_level":2}`, 200, slog.LevelDebug},
		{`{"log_info":true,"log_error":false}`, 400, slog.LevelInfo},
		{`{"log_file":"x"}`, 501, slog.LevelInfo},
		{`{"log_colour":true}`, 400, slog.LevelInfo},
	} {
		level := new(slog.LevelVar)
		hs := start(t, Options{Models: dir, Allow: []string{"logging"}, Level: level})
		if code, text := ask(t, "POST", hs.URL+"/v2/logging", c.body); code != c.code || level.Level() != c.level {
			t.Errorf("%s: %d %s, level %v; want %d, %v", c.body, code, text, level.Level(), c.code, c.level)
		}
		if c.level > slog.LevelInfo {
			if code, text := ask(t, "POST", hs.URL+"/v2/logging", `{"log_info":true}`); code != 200 || level.Level() != slog.LevelInfo {
				t.Errorf("back on: %d %s, %v", code, text, level.Level())
			}
		}
	}
}

// Padding comes from the parameters of a configuration, of which a wrong one is named.
func TestPaddingIsConfigured(t *testing.T) {
	config := func(pairs ...string) string {
		var b strings.Builder
		for i := 0; i < len(pairs); i += 2 {
			fmt.Fprintf(&b, "parameters { key: %q value { string_value: %q } }\n", pairs[i], pairs[i+1])
		}
		return b.String()
	}
	for _, c := range []struct{ config, want string }{
		{config("padding_inputs", "x:1", "padding_outputs", "out0:1", "padding_values", "x=-1"), ""},
		{config("padding_inputs", "x:one"), "NAME:DIMENSION"},
		{config("padding_inputs", "x:1", "padding_outputs", "out0"), "NAME:DIMENSION"},
		{config("padding_buckets", "8,many"), "expected sizes with commas"},
		{config("padding_inputs", "x:1", "padding_values", "x=much"), "NAME=VALUE"},
		{config("padding_mask", "x"), "padding_buckets or padding_inputs"},
	} {
		dir := t.TempDir()
		writeProgram(t, dir, "m", 1, "2")
		writeFile(t, filepath.Join(dir, "m", "config.pbtxt"), c.config)
		s, err := New(Options{Models: dir})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Load(t.Context())
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.config, err, c.want)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
