import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { ROOT, spawnPostern } from '../spawn-postern.ts'
import { type Command, type RecipePage } from './page.ts'
import { requestText, type ReceivedRequest } from './recorder.ts'
import { freePort } from '../free-port.ts'
import { lint, readDescription } from '../openapi.ts'
import type { Recipe, Service } from './service.ts'

/** Headers that every call to a service has. Pages show them where they matter, and no other header is left out. */
const USUAL =
  /^(?:host|connection|user-agent|accept-encoding|x-request-id|traceparent|forwarded|x-forwarded-.*|x-postern-.*)$/i
/** A line that stands for any further headers, and a text that stands for any other. */
const ELIDED = '…'
const MARK = '\x1e'
const SILENT = 'server: { timeouts: { lameDuck: 0s, silence: 0s } }'

/** A folder like that in which a reader types: of the repository, with my.yaml in it. */
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-recipe-'))
  for (const name of ['src', 'config', 'node_modules', 'package.json'])
    symlinkSync(join(ROOT, name), join(folder, name))
  return folder
}

/** Ports as the page shows them, and as they are in this run. */
class Ports {
  readonly #real = new Map<number, number>()

  set(shown: number, real: number): void {
    this.#real.set(shown, real)
  }

  readonly portFor = async (shown: number): Promise<number> => {
    const real = await freePort()
    this.set(shown, real)
    return real
  }

  /** The page's text with the ports of this run. */
  readonly filled = (text: string): string =>
    text.replace(/\b(127\.0\.0\.1|localhost):(\d{4,5})\b/g, (whole, host: string, port: string) => {
      const real = this.#real.get(Number(port))
      return real === undefined ? whole : `${host}:${real}`
    })
}

/** Does what the page says, in its order, and compares with what it shows. */
export async function runPage(page: RecipePage, { start }: Recipe): Promise<void> {
  const folder = makeFolder()
  const ports = new Ports()
  const service = await start?.({ folder, portFor: ports.portFor })
  try {
    save(folder, page, ports)
    await type(page.before, folder, ports)
    const postern = await spawnPostern({ root: folder, config: 'test.yaml', environment: page.environment })
    try {
      ports.set(8080, postern.port)
      expect(await lint(await readDescription(postern))).toEqual([])
      await type(page.after, folder, ports)
      expectReceived(page, service, ports)
    } catch (error) {
      // Its log is whole only then.
      await postern.stop()
      throw new Error(`${String(error)}\n${postern.output()}`, { cause: error })
    }
    await postern.stop()
  } finally {
    await service?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function save(folder: string, { configuration, files }: RecipePage, { filled }: Ports): void {
  writeFileSync(join(folder, 'my.yaml'), filled(configuration))
  writeFileSync(join(folder, 'test.yaml'), `extends: my.yaml\n${SILENT}\n`)
  for (const [name, text] of files) writeFileSync(join(folder, name), filled(text))
}

/** Types the commands into one shell, so that what one sets the next one has. */
async function type(commands: readonly Command[], folder: string, { filled }: Ports): Promise<void> {
  const script = commands.map(({ command }) => `${filled(command)}\nprintf '${MARK}'`).join('\n')
  const path = [dirname(process.execPath), process.env['PATH']].join(delimiter)
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-u', '-c', script], {
    cwd: folder,
    // With `npm run -s` the tests themselves, and so all that npm starts, would be silent.
    env: {
      ...process.env,
      PATH: path,
      npm_config_cache: join(folder, 'npm-cache'),
      npm_config_loglevel: 'notice',
    },
    maxBuffer: 1024 ** 3,
  })
  const outputs = stdout.split(MARK)
  for (const [at, { command, output }] of commands.entries())
    if (output !== undefined) expectShown(outputs[at] ?? '', filled(output), `${command}\n${stderr}`)
}

/** JSON may be laid out on the page as prettier does; all else is compared as it is printed. */
function expectShown(output: string, shown: string, told: string): void {
  const json = jsonOf(shown)
  if (json !== undefined) expect(JSON.parse(output), told).toEqual(json)
  else expect(output.replaceAll('\r\n', '\n').trimEnd(), told).toMatch(pattern(shown))
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const pattern = (shown: string): RegExp =>
  new RegExp(
    `^${shown
      .split(ELIDED)
      .map((part) => RegExp.escape(part))
      .join('.*?')}$`,
    's',
  )

/** The requests of the page came in its order, without other headers, and no token of a client came at all. */
function expectReceived(page: RecipePage, service: Service | undefined, { filled }: Ports): void {
  const received = service?.received() ?? []
  const told = received.map(requestText).join('\n\n')
  expect(told).not.toMatch(/^authorization: bearer ey/im)
  let from = 0
  for (const shown of page.received.map(filled)) {
    const at = received.findIndex((request, index) => index >= from && isAsShown(request, shown))
    expect(at, `the service did not get\n${shown}\n\nbut\n${told}`).toBeGreaterThanOrEqual(0)
    from = at + 1
  }
}

function isAsShown({ line, headers, body }: ReceivedRequest, shown: string): boolean {
  const [head = '', ...rest] = shown.split('\n\n')
  const [shownLine = '', ...shownHeaders] = head.split('\n')
  const left = headers.map(([name, value]) => `${name}: ${value}`)
  const someMore = shownHeaders.includes(ELIDED)
  for (const header of shownHeaders.filter((each) => each !== ELIDED)) {
    const at = left.findIndex((each) => new RegExp(pattern(header), 'is').test(each))
    if (at < 0) return false
    left.splice(at, 1)
  }
  return (
    pattern(shownLine).test(line) &&
    (someMore || left.every((each) => USUAL.test(each.split(':', 1)[0] ?? ''))) &&
    pattern(rest.join('\n\n')).test(body.trimEnd())
  )
}
