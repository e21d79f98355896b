package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// heredoc matches the text that a command reads instead of a file.
var heredoc = regexp.MustCompile(`(?s)<<(\w+)\n.*?\n(\w+)(\n|$)`)

// separator matches what ends a command.
var separator = regexp.MustCompile(`^(\n|;|&&|\|\|?|[()])`)

// commandsIn returns the words of the commands in a text, which can be quoted, be
// continued on the next line, and have comments. It knows as much of the shell as the
// documentation uses.
func commandsIn(text string) [][]string {
	text = heredoc.ReplaceAllString(strings.ReplaceAll(text, "\\\n", " "), "\n")
	var commands [][]string
	var words []string
	for text != "" {
		if end := separator.FindString(text); end != "" {
			commands, words, text = append(commands, words), nil, text[len(end):]
			continue
		}
		length := wordLength(text)
		switch {
		case length == 0:
			length = 1 // a space
		case text[0] == '#':
			length = strings.IndexByte(text+"\n", '\n')
		default:
			words = append(words, text[:length])
		}
		text = text[length:]
	}
	commands = append(commands, words)
	return slices.DeleteFunc(commands, func(words []string) bool { return len(words) == 0 })
}

// wordLength returns the length of the word at the beginning of the text.
func wordLength(text string) int {
	quote := rune(0)
	for i, char := range text {
		switch {
		case quote != 0:
			if char == quote {
				quote = 0
			}
		case char == '\'' || char == '"':
			quote = char
		case strings.ContainsRune(" \t\n;&|()", char):
			return i
		}
	}
	return len(text)
}

func TestCommandsIn(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"one command":       {"make run\n", "make,run"},
		"several lines":     {"make a\nmake b\n", "make,a;make,b"},
		"a line continued":  {"make \\\n  a\n", "make,a"},
		"quoted words":      {`f --m "a b" -p '{"x": 1}'`, `f,--m,"a b",-p,'{"x": 1}'`},
		"a quoted line end": {"jq '.a\n  | b'\nmake", "jq,'.a\n  | b';make"},
		"joined commands":   {"(cd a && make) | grep x; y", "cd,a;make;grep,x;y"},
		"comments":          {"# a remark\nmake a # it's\nmake b", "make,a;make,b"},
		"a document":        {"f - <<EOF\nmake nothing\nEOF\nmake a", "f,-;make,a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, words := range commandsIn(test.text) {
				got = append(got, strings.Join(words, ","))
			}
			if strings.Join(got, ";") != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
