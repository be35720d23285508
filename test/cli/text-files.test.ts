/** Text files that commands are given: a token, a secret, a password, a description. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readAdminToken } from '../../src/operate/trail/announcement.ts'
import { urlOfNobody } from '../support/free-port.ts'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { DEMO } from '../support/spawn-postern.ts'

/** An admin listener that refuses every order, and whose tokens it got. */
async function listener() {
  const got: (string | undefined)[] = []
  const server = createServer((request, response) => {
    got.push(request.headers.authorization)
    response.writeHead(409, { 'content-type': 'application/json' }).end('{"error":"not now"}')
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { got, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const latin1 = (text: string): Uint8Array => Buffer.from(text, 'latin1')
const utf16 = (text: string): Uint8Array => Buffer.from(`\ufeff${text}`, 'utf16le')

/** `postern reload` by the token of a file. */
async function reloadBy(content: string | Uint8Array) {
  const { got, url } = await listener()
  const at = configFiles({ token: content })
  const ended = await runVerb(['reload', '--admin-url', url, '--admin-token', `@${at('token')}`], {
    env: { POSTERN_CONFIG: DEMO },
  })
  return { got, ...ended, stderr: ended.stderr.replaceAll(at('token'), 'token') }
}

describe('C11.6 the token of --admin-token @FILE', () => {
  it.each([
    ['as it is', 'a-token-of-ann'],
    ['with a line end', 'a-token-of-ann\r\n'],
    ['behind a byte order mark', '\ufeffa-token-of-ann\n'],
  ])('is sent %s as the same token', async (_how, content) => {
    expect((await reloadBy(content)).got).toEqual(['Bearer a-token-of-ann'])
  })

  it.each([
    [
      'with a blank behind it',
      'a-token-of-ann \n',
      'holds no token that can be sent: it begins or ends with white space',
    ],
    [
      'with a second line end',
      'a-token-of-ann\n\n',
      'holds no token that can be sent: it has more than one line',
    ],
    [
      'with a tab in it',
      'a-token\tof-ann',
      'holds no token that can be sent: it holds other characters than visible ASCII',
    ],
    [
      'with an accent',
      'a-token-of-ren\u00e9',
      'holds no token that can be sent: it holds other characters than visible ASCII',
    ],
    ['that is empty', '\n', 'holds no token that can be sent: it is empty'],
    [
      'in Latin-1',
      latin1('a-token-of-ren\u00e9'),
      'cannot be read (line 1 is not UTF-8: save the file as UTF-8)',
    ],
    ['in UTF-16', utf16('a-token-of-ann'), 'cannot be read (it is UTF-16: save it as UTF-8)'],
  ])('%s ends the command, which sends nothing', async (_how, content, told) => {
    const { got, code, stderr } = await reloadBy(content)
    expect({ got, code, stderr }).toEqual({
      got: [],
      code: 2,
      stderr: expect.stringContaining(`postern: --admin-token: token ${told}`),
    })
    expect(stderr).not.toContain('a-token')
  })

  it('of POSTERN_ADMIN_TOKEN that no header can hold is told apart from a service that does not answer', async () => {
    const { got, url } = await listener()
    const by = (token: string, address: string) =>
      runVerb(['reload', '--admin-url', address], {
        env: { POSTERN_CONFIG: DEMO, POSTERN_ADMIN_TOKEN: token },
      })
    expect(await by('a-t\u20acken-of-ann', url)).toMatchObject({
      code: 1,
      stderr:
        'postern: this token cannot be sent: it holds other characters than visible ASCII, which no token can\n',
    })
    expect(got).toEqual([])
    const nobody = await urlOfNobody()
    expect((await by('a-token-of-ann', nobody)).stderr).toContain(
      `there is no answer from ${nobody} (ECONNREFUSED: nothing listens there)`,
    )
  })
})

describe('C11.6 other text files', () => {
  it.each([
    ['behind a byte order mark', '\ufeffa-token-of-the-service\n', undefined],
    [
      'with a blank behind it',
      'a-token-of-the-service \n',
      /admin-token begins or ends with white space. Run rm/,
    ],
    ['in UTF-16', utf16('a-token-of-the-service'), /admin-token cannot be read \(it is UTF-16.*Run rm/],
  ])('the admin token of a data folder, %s', async (_how, content, told) => {
    const data = await dataFolder()
    writeFileSync(join(data, 'admin-token'), content, { mode: 0o600 })
    if (told === undefined) expect(await readAdminToken(data)).toBe('a-token-of-the-service')
    else await expect(readAdminToken(data)).rejects.toThrow(told)
  })

  it.each([
    ['with a blank behind it', 's3cret \n', 'is no secret: it begins or ends with white space'],
    ['in Latin-1', latin1('s\u00e9cret'), 'cannot be read (line 1 is not UTF-8: save the file as UTF-8)'],
  ])('a secret of --value-file %s is refused, and nothing is stored', async (_how, content, told) => {
    const env = { POSTERN_CONFIG: DEMO, POSTERN_DATA: await dataFolder() }
    const at = configFiles({ key: content })
    const add = ['business', 'add', 'INITECH', '--name', 'Initech', '--value-file', `key=${at('key')}`]
    expect(await runVerb(add, { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`--value-file: ${at('key')} ${told}`),
    })
  })

  it('a password on standard input that is no UTF-8 is refused', async () => {
    const stdin = new PassThrough().end(latin1('caf\u00e9-password\n'))
    expect(await runVerb(['hash-password'], { stdin })).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('standard input: line 1 is not UTF-8'),
    })
  })
})
