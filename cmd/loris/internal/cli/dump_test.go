package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/loris-ml/loris/cmd/loris/internal/command"
	"github.com/loris-ml/loris/cmd/loris/internal/commandtest"
	"github.com/loris-ml/loris/internal/graph"
)

func TestDump(t *testing.T) {
	prog := commandtest.Write(t, "affine.lir", commandtest.Affine)
	golden(t, "dump_text.txt", succeed(t, "dump", prog))
	golden(t, "dump_dot.txt", succeed(t, "dump", prog, "--format", "dot"))
	p, err := graph.Parse(commandtest.Affine)
	if err != nil {
		t.Fatal(err)
	}
	asJSON := succeed(t, "dump", prog, "--format", "json")
	golden(t, "dump_json.txt", strings.Replace(asJSON, p.Hash().String(), "HASH", 1))
	if got := succeed(t, "dump", prog, "--hash"); got != p.Hash().String()+"\n" {
		t.Errorf("hash %q, want %v", got, p.Hash())
	}
	back, err := graph.Parse(succeed(t, "dump", prog))
	if err != nil || back.Hash() != p.Hash() {
		t.Errorf("the text is read back with hash %v, want %v: %v", back.Hash(), p.Hash(), err)
	}
}

func TestDumpLowered(t *testing.T) {
	prog := commandtest.Write(t, "soft.lir", `program @soft {
  %x = parameter "x" : f32[2,3]
  return softmax(%x, dim=-1)
}`)
	text := succeed(t, "dump", prog, "--lowered", "--device", "ref")
	if !strings.HasPrefix(text, "# for ref:0: 1 instructions became 6: decompose 1\n") || strings.Contains(text, "softmax") {
		t.Errorf("lowered for ref:\n%s", text)
	}
	if _, err := graph.Parse(text); err != nil {
		t.Errorf("the text is not read back: %v", err)
	}
	var p programJSONForm
	if err := json.Unmarshal([]byte(succeed(t, "dump", prog, "--lowered", "--device", "ref", "--format", "json")), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Instructions) != 6 || p.Instructions[0].Op != "amax" || p.Instructions[0].Attrs["keepdim"] != true {
		t.Errorf("%+v", p)
	}
	if code, _, errOut := invoke(t, "", "dump", prog, "--lowered", "--device", "abacus"); code != command.ExitError || !strings.Contains(errOut, "device error") {
		t.Errorf("exit code %d, error %q", code, errOut)
	}
}
