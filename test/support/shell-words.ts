/** The words of one command of a shell, without what is redirected or follows in a pipe. Knows quotes, no variables. */
export function shellWords(line: string): readonly string[] {
  const words: string[] = []
  for (const [word] of line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (/^(?:[|;#&]|[<>])/.test(word)) break
    words.push(word.replaceAll(/'([^']*)'|"([^"]*)"/g, '$1$2').replace(/;$/, ''))
    if (word.endsWith(';')) break
  }
  return words
}
