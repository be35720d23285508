import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codeBlocks, partsOf } from './read-page.ts'
import { needing } from '../../support/machine.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'

/** C11.4: what the pages of the demo say is what the demo does. Their commands are run by a shell, with curl. */

const run = promisify(execFile)
const AREAS = ['fund-data', 'member-data']

const shell = async (commands: readonly string[]): Promise<string> =>
  (await run('sh', ['-c', commands.join('\n')])).stdout

/** Without the indents and line ends that are there for people. */
const flat = (xml: string): string => xml.replaceAll(/>\s+</g, '><')

describe('C11.4 the commands of the developer pages', needing('curl'), () => {
  let service: StartedPostern

  beforeAll(async () => {
    service = await startPostern({ keeps: 'nothing' })
  })
  afterAll(async () => {
    await service.close()
  })

  const page = async (path: string): Promise<string> => (await fetch(`${service.authUrl}${path}`)).text()
  const shellOf = (html: string): readonly string[] =>
    codeBlocks(html).flatMap(({ kind, text }) => (kind === 'Shell' ? [text] : []))

  it('C11.4 gets a token, calls with it, and reads the same answer in XML, as the first page shows', async () => {
    const first = partsOf(await page('/developers')).get('first-call') ?? ''
    const [token = '', json = '', xml = ''] = shellOf(first)
    const written = await shell([token, json, 'echo', xml])
    const [asJson = '', asXml = ''] = written.split('\n')
    expect(JSON.parse(asJson)).toMatchObject({ Errors: [], Data: { TotalCount: expect.any(Number) } })
    expect(asXml).toMatch(/^<\?xml .*<ApiResponse[^>]*><Errors\/><Data><FundSummaries type="array">/)

    const whole = await shell([token.slice(token.indexOf('curl'), token.indexOf(' \\\n  | sed'))])
    const shown = codeBlocks(first).find(({ kind }) => kind === 'JSON')?.text ?? ''
    expect(JSON.parse(whole)).toEqual({ ...JSON.parse(shown), access_token: expect.stringMatching(/^ey/) })
  })

  it('C11.4 makes a proof for the code flow that the token endpoint would believe', async () => {
    const flow = partsOf(await page('/developers')).get('code-flow') ?? ''
    const [proof = ''] = shellOf(flow)
    const made = await shell([proof, 'echo "$VERIFIER $CHALLENGE $STATE"'])
    const [verifier = '', challenge, state] = made.trim().split(' ')
    expect(verifier).toMatch(/^[\w-]{64}$/)
    expect(challenge).toBe(createHash('sha256').update(verifier).digest('base64url'))
    expect(state).toMatch(/^[0-9a-f]{32}$/)
  })

  it.each(AREAS)(
    'C11.4 answers each command on the page of %s as the example beside it says',
    async (area) => {
      const parts = partsOf(await page(`/developers/${area}`))
      const [token = ''] = shellOf(parts.get('token') ?? '')
      const operations = [...parts].filter(([id]) => id !== 'token')
      expect(operations.length).toBeGreaterThan(1)
      const script = [token]
      const compared: ((written: readonly string[]) => void)[] = []
      for (const [id, part] of operations) {
        const commands = codeBlocks(part).filter(({ kind }) => kind === 'Shell')
        const answers = codeBlocks(part).filter(({ label }) => label.includes(': Answer'))
        expect([id, answers.length]).toEqual([id, commands.length * 2])
        for (const [at, { text }] of commands.entries()) {
          const [json, xml] = answers.slice(at * 2, at * 2 + 2)
          const asXml = (accept: string): string => `${text} \\\n -H 'Accept: ${accept}'`
          const version = /action\.v\d+/.exec(text)?.[0]
          const type = version === undefined ? 'application/xml' : `application/vnd.postern.${version}+xml`
          // A second Accept would be a list: the first one is taken out.
          script.push(text, 'echo', asXml(type).replace(/ \\\n {2}-H 'Accept: [^']*\+json'/, ''), 'echo')
          compared.push(([one = '', other = '']) => {
            expect([id, JSON.parse(one)]).toEqual([id, JSON.parse(json?.text ?? '')])
            // What is created once is there the second time.
            if (!id.startsWith('post-')) expect([id, other]).toEqual([id, flat(xml?.text ?? '')])
          })
        }
      }
      const written = (await shell(script)).split('\n')
      for (const [at, compare] of compared.entries()) compare(written.slice(2 * at, 2 * at + 2))
    },
  )
})
