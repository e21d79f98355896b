package inspect

import "testing"

func TestCommandLines(t *testing.T) {
	tests := map[string]struct {
		with CommandLine
		want string
	}{
		"a program":       {CommandLine{Pattern: "./my-operator COMMAND"}, "./my-operator retry kex/a -n default"},
		"the tool":        {CommandLine{Pattern: "kopf COMMAND ./handlers"}, "kopf retry ./handlers kex/a -n default"},
		"another cluster": {CommandLine{Pattern: "kubectl kopf COMMAND", Flags: []string{"--context=a", "--kubeconfig=my file"}}, "kubectl kopf retry kex/a -n default --context=a '--kubeconfig=my file'"},
		"unknown":         {CommandLine{}, "retry kex/a -n default"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.with.Of("retry", "kex/a -n default"); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
	if got := (CommandLine{Flags: []string{"--context=a"}}).Kubectl("describe kex/a"); got != "kubectl describe kex/a --context=a" {
		t.Errorf("got %s", got)
	}
}

func TestQuotes(t *testing.T) {
	if got := Quote("./a-b_c/d:e,f=g@h.i", "a b", "it's", "$HOME", "*", ""); got != `./a-b_c/d:e,f=g@h.i 'a b' 'it'\''s' '$HOME' '*' ''` {
		t.Errorf("got %s", got)
	}
}
