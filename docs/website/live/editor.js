// A cell's editor: CodeMirror, in the colours of the page.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colour = (name) => ({ color: `var(--md-code-hl-${name}-color)` });
const highlighting = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], ...colour("keyword") },
  { tag: [tags.string, tags.special(tags.string)], ...colour("string") },
  { tag: tags.number, ...colour("number") },
  { tag: tags.comment, ...colour("comment") },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], ...colour("function") },
  { tag: [tags.bool, tags.null, tags.self], ...colour("constant") },
  { tag: tags.operator, ...colour("operator") },
]);

const atFault = StateEffect.define();
const lineAtFault = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = transaction.docChanged ? Decoration.none : marks;
    for (const effect of transaction.effects)
      if (effect.is(atFault)) {
        const line = effect.value;
        next =
          line < 1 || line > transaction.state.doc.lines
            ? Decoration.none
            : Decoration.set([Decoration.line({ class: "at-fault" }).range(transaction.state.doc.line(line).from)]);
      }
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** An editor in a place of the page: what it holds, and marks on it. */
export function edit(place, code, label, { run, changed }) {
  const view = new EditorView({
    parent: place,
    state: EditorState.create({
      doc: code,
      extensions: [
        keymap.of([
          { key: "Mod-Enter", run: () => (run(), true) },
          { key: "Shift-Enter", run: () => (run(), true) },
        ]),
        history(),
        drawSelection(),
        bracketMatching(),
        indentUnit.of("    "),
        python(),
        syntaxHighlighting(highlighting),
        lineAtFault,
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    }),
  });
  return {
    write: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    point: (line) => view.dispatch({ effects: atFault.of(line) }),
  };
}
