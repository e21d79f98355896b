package events

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

func TestMessagesAreOneCleanLine(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"nothing special":            {"Some message, 100 % – ok", "Some message, 100 % – ok"},
		"newlines and tabs":          {"\none\r\ntwo\tthree\n", "one  two three"},
		"terminal colors":            {"\x1b[31mred\x1b[0m", "[31mred [0m"},
		"other line separators":      {"a\u2028b\u2029c\u0085d", "a b c d"},
		"direction marks":            {"abc\u202egnp.exe", "abcgnp.exe"},
		"bytes that are not text":    {"a\xff\xfeb", "a\uFFFD\uFFFDb"},
		"a zero byte":                {"a\x00b", "a b"},
		"an emoji of several runes":  {"👩\u200d🚒", "👩\u200d🚒"},
		"exactly the maximum length": {strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		"longer than the maximum":    {strings.Repeat("x", 1025), strings.Repeat("x", 510) + "..." + strings.Repeat("x", 510)},
		"both ends are kept":         {"start" + strings.Repeat("x", 5000) + "end", "start" + strings.Repeat("x", 505) + "..." + strings.Repeat("x", 507) + "end"},
		"characters are not split":   {strings.Repeat("ß", 1000), strings.Repeat("ß", 255) + "..." + strings.Repeat("ß", 255)},
		"wide characters either":     {"x" + strings.Repeat("€", 1000), "x" + strings.Repeat("€", 169) + "..." + strings.Repeat("€", 170)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := singleLine(test.text); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestTypesAndReasonsAreSingleWords(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a word":                {"SomeReason", "SomeReason"},
		"several words":         {"some reason", "someReason"},
		"lines and punctuation": {" {some\n\"other}\x1b reason! ", "someOtherReason"},
		"signs inside words":    {"spec.field/sub-handler_1:x", "spec.field/sub-handler_1:x"},
		"non-ASCII words":       {"größter überschuss", "größterÜberschuss"},
		"an empty text":         {"", "Otherwise"},
		"no usable characters":  {" \x00\xff ", "Otherwise"},
		"too long":              {strings.Repeat("ß", 100), strings.Repeat("ß", 64)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := singleWord(test.text, "Otherwise"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzTexts(f *testing.F) {
	f.Add("some text")
	f.Add(strings.Repeat("€\xff\n", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		for what, got := range map[string]struct {
			text  string
			limit int
		}{
			"line":     {singleLine(text), maxMessage},
			"combined": {combinedMessage(&corev1.Event{Message: singleLine(text)}), maxMessage},
			"word":     {singleWord(text, "x"), maxWord},
		} {
			if len(got.text) > got.limit || !utf8.ValidString(got.text) || strings.ContainsAny(got.text, "\n\r\x00\x1b") {
				t.Errorf("%s of %q: %q", what, text, got.text)
			}
		}
	})
}
