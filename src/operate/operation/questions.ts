import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Terminal } from './terminal.ts'
import { UsageError } from './verb.ts'

/** Asks, and again until the answer is good. An empty answer, or the end of the input, is the default. */
export type PromptUser = <T>(
  question: { readonly asks: string },
  usual: string,
  read: (answer: string) => T,
) => Promise<T>

export function questionsOn({ stdin, stderr }: Terminal): { ask: PromptUser; close: () => void } {
  const lines = createInterface({ input: stdin, output: stderr })
  // `question` never settles if the input ends without an answer.
  let hasEnded = stdin.readableEnded
  const ended = once(lines, 'close').then(() => ((hasEnded = true), ''))
  const ask: PromptUser = async (question, usual, read) => {
    for (;;) {
      const prompt = `${question.asks} [${usual}]: `
      const answer = hasEnded ? '' : await Promise.race([lines.question(prompt), ended])
      try {
        return read(answer.trim() || usual)
      } catch (thrown) {
        if (!(thrown instanceof UsageError)) throw thrown
        stderr.write(`${thrown.message.replace(/^--[a-z-]+: /, '')}\n`)
      }
    }
  }
  return { ask, close: () => lines.close() }
}
