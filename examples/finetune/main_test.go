package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loris-ml/loris/safetensors"
)

// The fixture is what `export.py resnet18.pt2 --width 4 --epochs 4 --plain` writes: it knows the digits 0 to 4.
func TestFinetuneTeachesTheOtherDigits(t *testing.T) {
	var out strings.Builder
	file := filepath.Join(t.TempDir(), "weights.safetensors")
	before, after, err := command(t.Context(), &out, []string{filepath.Join("testdata", "resnet18.pt2")}, file, 6, 2e-3)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if before > 185 || after < 335 {
		t.Errorf("%d and %d of 360 images are right, want at most 185 before and at least 335 after", before, after)
	}
	f, err := safetensors.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"conv1.weight", "layer4.1.bn2.running_var", "fc.bias"} {
		if _, ok := f.Lookup(name); !ok {
			t.Errorf("the file has no %s", name)
		}
	}
}

func TestCommandNamesWhatIsMissing(t *testing.T) {
	if _, _, err := command(t.Context(), os.Stderr, nil, "", 1, 1); err == nil || !strings.Contains(err.Error(), "export.py") {
		t.Error(err)
	}
}
