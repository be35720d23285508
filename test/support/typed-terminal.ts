import { PassThrough } from 'node:stream'

/** A terminal on which these lines are typed, each at a question. */
export function typing(lines: readonly string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  const stderr = new PassThrough()
  let shown = ''
  const left = [...lines]
  stderr.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
    if (!shown.endsWith(']: ')) return
    const next = left.shift()
    if (next === undefined) stdin.end()
    else stdin.write(`${next}\n`)
  })
  const terminal = { env: {}, stdin: stdin as unknown as NodeJS.ReadStream, stderr, stdout: stderr }
  return { terminal, shown: () => shown }
}
