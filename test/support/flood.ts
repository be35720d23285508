import { connect } from 'node:net'

const CONNECTIONS = 8
/** Requests that are sent before their answers are awaited. */
const TRAIN = 50
/** Thirteen characters, wherever a body before it ended. */
const STATUS_LINE = /HTTP\/1\.1 (\d{3}) /g

/**
 * Sends as many requests as fast as they are answered, over kept connections, one train of them after the other.
 * Each must leave its connection open. Resolves with how often each status was answered.
 */
export async function flood(
  port: number,
  count: number,
  request: (index: number) => string,
): Promise<Record<string, number>> {
  const statuses: Record<string, number> = {}
  let next = 0
  const lead = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1' }).setEncoding('latin1')
      let waiting = 0
      const depart = (): void => {
        const train: string[] = []
        while (train.length < TRAIN && next < count) train.push(request(next++))
        waiting = train.length
        if (waiting > 0) socket.write(train.join(''))
        else socket.end(resolve)
      }
      let text = ''
      socket.on('data', (more: string) => {
        text += more
        const answers = [...text.matchAll(STATUS_LINE)]
        for (const [, status = ''] of answers) statuses[status] = (statuses[status] ?? 0) + 1
        // A status line that is not there whole waits for its rest.
        const last = answers.at(-1)
        text = text.slice(Math.max(last === undefined ? 0 : last.index + last[0].length, text.length - 12))
        waiting -= answers.length
        if (waiting === 0) depart()
      })
      socket.once('connect', depart)
      socket.once('error', reject)
      socket.once('close', () => (waiting > 0 ? reject(new Error(`closed: ${text}`)) : resolve()))
    })
  await Promise.all(Array.from({ length: CONNECTIONS }, lead))
  return statuses
}
