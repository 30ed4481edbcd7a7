package tokenizer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/data"
)

func TestCharacters(t *testing.T) {
	tk := Characters("hé hello")
	if tk.Size() != 6 { // space, e, h, l, o, é
		t.Errorf("%d characters", tk.Size())
	}
	ids, err := tk.Encode("hé o")
	if err != nil || !slices.Equal(ids, []int64{2, 5, 0, 4}) {
		t.Errorf("%v, %v", ids, err)
	}
	if text, err := tk.Decode(ids); err != nil || text != "hé o" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := tk.Encode("hét"); err == nil || !strings.Contains(err.Error(), "'t' at byte 3") {
		t.Errorf("error %v", err)
	}
	for _, bad := range []int64{-1, 6} {
		if _, err := tk.Decode([]int64{0, bad}); err == nil || !strings.Contains(err.Error(), "token 1 is") {
			t.Errorf("error %v", err)
		}
	}
}

func open(t *testing.T) Tokenizer {
	t.Helper()
	tk, err := Open(filepath.Join("testdata", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// A tokenizer of BERT's kind with a few word pieces. The numbers are those that the Rust library of
// Hugging Face gives.
func TestFile(t *testing.T) {
	tk := open(t)
	if tk.Size() != 9 {
		t.Errorf("%d tokens", tk.Size())
	}
	for text, want := range map[string][]int64{
		"The cafés, the café": {1, 3, 4, 5, 6, 3, 4, 2},
		"Food":                {1, 7, 2},
		"":                    {1, 2},
	} {
		if got, err := tk.Encode(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	if text, err := tk.Decode([]int64{1, 3, 4, 5, 2}); err != nil || text != "the cafes" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := tk.Decode([]int64{9}); err == nil {
		t.Error("a token that is not there")
	}
}

func TestBatch(t *testing.T) {
	tk := open(t)
	ids, mask, err := Batch(tk, []string{"The cafés, the café", "Food"}, 100)
	want := data.Of([]int64{1, 3, 4, 5, 6, 3, 4, 2, 1, 7, 2, 0, 0, 0, 0, 0}, 2, 8)
	wantMask := data.Of([]int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}, 2, 8)
	if err != nil || !reflect.DeepEqual(ids, want) || !reflect.DeepEqual(mask, wantMask) {
		t.Errorf("%v, %v, %v", ids, mask, err)
	}
	ids, _, err = Batch(tk, []string{strings.Repeat("food ", 400)}, 5)
	if want := data.Of([]int64{1, 7, 7, 7, 2}, 1, 5); err != nil || !reflect.DeepEqual(ids, want) {
		t.Errorf("%v, %v", ids, err)
	}
	_, _, none := Batch(tk, nil, 5)
	_, _, short := Batch(tk, []string{"a"}, 1)
	if !errors.Is(none, loris.ErrArg) || !errors.Is(short, loris.ErrArg) {
		t.Errorf("%v, %v", none, short)
	}
	if _, _, err := Batch(Characters("a"), []string{"a", "b"}, 5); err == nil || !strings.Contains(err.Error(), "text 1") {
		t.Errorf("error %v", err)
	}
}

func TestGoroutines(t *testing.T) {
	tk := open(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if ids, err := tk.Encode("the cafés"); err != nil || len(ids) != 5 {
					t.Errorf("%v, %v", ids, err)
				}
			}
		})
	}
	wg.Wait()
}

// The library takes memory out of proportion to these, or ends the process where they are larger yet.
func TestHostileFiles(t *testing.T) {
	good, err := os.ReadFile(filepath.Join("testdata", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	double := `{"type":"Replace","pattern":{"String":"a"},"content":"aa"}`
	nested := `{"type":"Sequence","normalizers":[` + strings.Repeat(double+",", 5) + double + `]}`
	path := filepath.Join(t.TempDir(), "hostile.json")
	for name, change := range map[string][2]string{
		"added token 0":                  {`"content": "[PAD]"`, `"content": "` + strings.Repeat("a", 4<<20) + `"`},
		"added tokens have more":         {`"added_tokens": [`, `"added_tokens": [` + strings.Repeat(`{"content": "`+strings.Repeat("a", 1000)+`"},`, 1100)},
		"times as long":                  {`"type": "BertNormalizer"`, `"type": "Sequence", "normalizers":[` + nested + `,` + double + `]`},
		"more than 64 times as long":     {`"type": "BertNormalizer"`, `"type": "Replace", "pattern":{"String":"a"}, "content":"` + strings.Repeat("a", 65) + `"`},
		"may make a text more than 64 t": {`"type": "BertNormalizer"`, `"type": "Prepend", "prepend":"` + strings.Repeat("a", 65) + `"`},
		"the normalizer may":             {`"type": "BertNormalizer"`, `"type": "Prepend", "Prepend":"", "prepend":"` + strings.Repeat("a", 65) + `"`},
		"the pre_tokenizer may":          {`"pre_tokenizer": {`, `"pre_tokenizer": {"type":"Metaspace", "replacement":"` + strings.Repeat("a", 65) + `"}, "x": {`},
		"the post_processor may":         {`"single": [`, `"single": [` + strings.Repeat(`{"Sequence":{"id":"A","type_id":0}},`, 64)},
		"post_processor may make":        {`"ids": [`, `"ids": [` + strings.Repeat("1,", 64)},
	} {
		text := strings.Replace(string(good), change[0], change[1], 1)
		if text == string(good) {
			t.Fatalf("%s: the file has no %s", name, change[0])
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "may have") {
		t.Errorf("a large file: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	good, err := os.ReadFile(filepath.Join("testdata", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bad.json")
	for _, text := range []string{"", "{", "[]", "{}", `{"model":{}}`, `{"model":{"type":"BPE"}}`, string(good[:len(good)/2])} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "bad.json") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
