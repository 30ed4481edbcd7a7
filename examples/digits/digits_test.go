package digits

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func load(t *testing.T) *Dataset {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ink is the sum of all pixels as integers from 0 to 16.
func ink(d *Dataset) int {
	sum := 0.0
	for _, p := range d.Pixels {
		sum += 16 * float64(p)
	}
	return int(sum)
}

func counts(d *Dataset) []int {
	n := make([]int, Classes)
	for _, label := range d.Labels {
		n[label]++
	}
	return n
}

// TestLoad compares with what scikit-learn's load_digits gives.
func TestLoad(t *testing.T) {
	d := load(t)
	if d.Len() != Size || len(d.Pixels) != Size*Features {
		t.Fatalf("%d images of %d pixels", d.Len(), len(d.Pixels))
	}
	if got := ink(d); got != 561718 {
		t.Errorf("ink %d", got)
	}
	if got, want := counts(d), []int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}; !slices.Equal(got, want) {
		t.Errorf("counts %v, want %v", got, want)
	}
	if got, want := d.Labels[Size-5:], []int64{9, 0, 8, 9, 8}; !slices.Equal(got, want) {
		t.Errorf("last labels %v, want %v", got, want)
	}
	if got, want := d.Image(0)[:8], []float32{0, 0, 5. / 16, 13. / 16, 9. / 16, 1. / 16, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("first row %v, want %v", got, want)
	}
	if lo, hi := slices.Min(d.Pixels), slices.Max(d.Pixels); lo != 0 || hi != 1 {
		t.Errorf("pixels from %v to %v", lo, hi)
	}
}

func TestDamagedFiles(t *testing.T) {
	good := strings.Repeat("1,", Features) + "9\n"
	pack := func(text string) []byte {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		io.WriteString(w, text)
		w.Close()
		return buf.Bytes()
	}
	whole := pack(strings.Repeat(good, Size))
	if _, err := parse(bytes.NewReader(whole)); err != nil {
		t.Fatalf("a good file: %v", err)
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "EOF"},
		{"not compressed", []byte(good), "gzip"},
		{"truncated", whole[:len(whole)-9], "EOF"},
		{"too few fields", pack("1,2\n"), "wrong number of fields"},
		{"too few images", pack(good), "1 images, want 1797"},
		{"no number", pack(good + "x" + good[1:]), `line 2, column 1: "x"`},
		{"too much ink", pack("17" + good[1:]), `"17" is no number from 0 to 16`},
		{"no digit", pack(strings.Repeat("1,", Features) + "10\n"), `"10" is no number from 0 to 9`},
	} {
		if _, err := parse(bytes.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// TestSplit compares with the Python code of the README.
func TestSplit(t *testing.T) {
	d := load(t)
	train, test := d.Split(42)
	if train.Len() != 1437 || test.Len() != 360 {
		t.Fatalf("%d and %d images", train.Len(), test.Len())
	}
	if got, want := counts(test), slices.Repeat([]int{TestPerClass}, Classes); !slices.Equal(got, want) {
		t.Errorf("test digits %v", got)
	}
	if got, want := test.Labels[:8], []int64{9, 1, 1, 1, 7, 5, 2, 7}; !slices.Equal(got, want) {
		t.Errorf("test labels %v, want %v", got, want)
	}
	if got, want := train.Labels[:8], []int64{6, 2, 6, 7, 7, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("train labels %v, want %v", got, want)
	}
	if got := ink(test); got != 111632 {
		t.Errorf("ink of the test part %d", got)
	}
	if ink(train)+ink(test) != ink(d) {
		t.Error("the parts are not the whole")
	}
	if !slices.Equal(test.Image(1), d.Image(623)) || !slices.Equal(train.Image(1), d.Image(1742)) {
		t.Error("images are not where their labels are")
	}
}

// TestBatches compares with the Python code of the README.
func TestBatches(t *testing.T) {
	train, _ := load(t).Split(42)
	batches := slices.Collect(train.Batches(32, 7, 3))
	if len(batches) != 45 {
		t.Fatalf("%d batches", len(batches))
	}
	if got, want := batches[1].Labels[:8], []int64{1, 0, 6, 8, 4, 1, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
	if got := ink(batches[1]); got != 9994 {
		t.Errorf("ink %d", got)
	}
	seen := &Dataset{}
	for i, b := range batches {
		want := 32
		if i == 44 {
			want = 1437 - 44*32 // the images left over
		}
		if b.Len() != want || len(b.Pixels) != want*Features {
			t.Errorf("batch %d of %d images, want %d", i, b.Len(), want)
		}
		seen.Pixels = append(seen.Pixels, b.Pixels...)
		seen.Labels = append(seen.Labels, b.Labels...)
	}
	if ink(seen) != ink(train) || !slices.Equal(counts(seen), counts(train)) {
		t.Error("the batches are not the whole")
	}
	batches[0].Pixels[0] = 42
	if slices.Max(train.Pixels) != 1 {
		t.Error("a batch shares memory with the set")
	}
	for range train.Batches(32, 7, 3) {
		break // an early end must not panic
	}
	if n := len(slices.Collect(train.Batches(1437, 7, 3))); n != 1 {
		t.Errorf("%d batches of the whole", n)
	}
	if got := slices.Collect(train.Batches(1438, 7, 3)); len(got) != 1 || got[0].Len() != 1437 {
		t.Errorf("%d batches of more than the whole", len(got))
	}
	if n := len(slices.Collect((&Dataset{}).Batches(32, 7, 3))); n != 0 {
		t.Errorf("%d batches of nothing", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("batches of no images did not panic")
		}
	}()
	train.Batches(0, 7, 3)
}

func ExampleLoad() {
	d, err := Load()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Len(), "images, the first a", d.Labels[0])
	for row := range 8 {
		for _, p := range d.Image(0)[8*row : 8*row+8] {
			fmt.Printf("%c", ".:-=+*%@#"[int(8*p)])
		}
		fmt.Println()
	}
	// Output:
	// 1797 images, the first a 0
	// ..-%+...
	// ..%@*@-.
	// .:@:.*+.
	// .-%..++.
	// .-+..++.
	// .-*..%=.
	// .:@-*%..
	// ..=%*...
}
