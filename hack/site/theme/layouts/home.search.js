{{- /* The texts of all sections: address, page, heading, and text. */ -}}
{{- $sections := slice }}
{{- range $page := site.Pages }}
  {{- $address := strings.TrimPrefix "/" .Params.url }}
  {{- $text := replaceRE `<a class="anchor"[^>]*>#</a>` "" .Content }}
  {{- $text = replaceRE `(?s)<svg.*?</svg>` "" $text }}
  {{- $text = replaceRE `</(td|th|li|p)>` " " $text }}
  {{- range $i, $part := split (replaceRE `<h[1-6] id="` "\x00" $text) "\x00" }}
    {{- if $i }}
      {{- $id := index (split $part `"`) 0 }}
      {{- $title := index (findRE `(?s)>.*?</h[1-6]>` $part 1) 0 | strings.TrimPrefix ">" }}
      {{- $rest := replaceRE `(?s)^.*?</h[1-6]>` "" $part 1 }}
      {{- $sections = $sections | append (dict "address" (printf "%s#%s" $address $id) "page" $page.Title "heading" ($title | plainify | htmlUnescape | strings.TrimSpace) "text" ($rest | plainify | htmlUnescape | replaceRE `\s+` " ")) }}
    {{- end }}
  {{- end }}
{{- end -}}
window.searchIndex = {{ $sections | jsonify | safeJS }};
