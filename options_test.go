package loris

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// optionInterface returns the interface of the options that a function takes.
func optionInterface(typ reflect.Type) (reflect.Type, bool) {
	if !typ.IsVariadic() {
		return nil, false
	}
	elem := typ.In(typ.NumIn() - 1).Elem()
	return elem, elem.Kind() == reflect.Interface && elem.NumMethod() == 1
}

// optionOf returns the option for op that gives the argument of that name.
func optionOf(op ir.Op, iface reflect.Type, name string, value any) (reflect.Value, bool) {
	for _, zero := range optionTypes {
		typ := reflect.TypeOf(zero)
		if typ.Implements(iface) && slices.Equal(givenBy(op, zero), []string{name}) {
			return reflect.ValueOf(struct{ v any }{value}).Convert(typ), true
		}
	}
	return reflect.Value{}, false
}

// givenBy returns ATen's names of the arguments that an option gives to op.
func givenBy(op ir.Op, option any) (names []string) {
	for _, n := range appendOption(nil, op, option) {
		names = append(names, n.Name)
	}
	return names
}

// byHandOptions are the options of methods that choose between rows.
var byHandOptions = map[string][]string{"add": {"alpha"}, "sub": {"alpha"}, "div": {"rounding_mode"}}

// TestOptionsAreThoseOfTheSchema holds the types that implement the interface of
// each method's options against the optional arguments of its row.
func TestOptionsAreThoseOfTheSchema(t *testing.T) {
	checked := 0
	for _, sp := range ir.Ops() {
		if sp.Name[0] == '_' && sp.GoName == "" {
			continue // ATen's own, without a form in Go
		}
		method, ok := reflect.TypeFor[*Tensor]().MethodByName(methodName(sp.Name))
		if !ok {
			continue
		}
		want := slices.Clone(byHandOptions[sp.Name])
		iface, ok := optionInterface(method.Type)
		if ok && want == nil {
			for _, p := range sp.Schema.Params {
				if p.HasDef {
					want = append(want, p.Name)
				}
			}
		}
		if !ok {
			continue
		}
		checked++
		var got []string
		for _, zero := range optionTypes {
			if reflect.TypeOf(zero).Implements(iface) {
				got = append(got, givenBy(sp.Op, zero)...)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s takes the options %v, its row has %v", sp.Name, got, want)
		}
	}
	if checked < 60 {
		t.Errorf("only %d methods with options were found", checked)
	}
}

// TestOptionsAreCheckedByTheCompiler builds a program whose lines marked with
// "want" must not compile, and no other.
func TestOptionsAreCheckedByTheCompiler(t *testing.T) {
	const dir = "testdata/misuse"
	src, err := os.ReadFile(dir + "/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for i, line := range strings.Split(string(src), "\n") {
		if strings.Contains(line, "// want") {
			want = append(want, fmt.Sprint(i+1))
		}
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, "./"+dir)
	cmd.Stderr = &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		t.Fatalf("go build: %v, want compile errors", err)
	}
	for _, line := range strings.Split(stderr.String(), "\n") {
		if f := strings.SplitN(line, ":", 4); len(f) == 4 && strings.HasSuffix(f[0], "main.go") {
			got = append(got, f[1])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines %v do not compile, want %v:\n%s", got, want, stderr.Bytes())
	}
}
