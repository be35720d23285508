import { describe, expect, it } from 'vitest'
import { parse } from '../../src/cli/line/options.ts'
import type { Verb } from '../../src/operate/operation/verb.ts'
import { runVerb } from '../support/command-line.ts'

const VERB = {
  summary: 'Do it',
  arguments: [{ name: 'METHOD' }, { name: 'FILE', kind: 'file', repeated: true, optional: true }],
  options: {
    client: { type: 'string', value: 'ID', help: 'A client' },
    scope: { type: 'string', multiple: true, help: 'A scope' },
    role: { type: 'string', words: ['view', 'operate'], help: 'A role' },
    until: { type: 'string', kind: 'time', help: 'The end' },
    overlap: { type: 'string', kind: 'duration', help: 'How long' },
    wait: { type: 'string', kind: 'wait', help: 'How long' },
    limit: { type: 'string', kind: 'rows', help: 'Rows' },
    url: { type: 'string', kind: 'url', help: 'Where' },
    header: { type: 'string', short: 'H', help: 'A line' },
    json: { type: 'boolean', help: 'JSON' },
    demo: { type: 'boolean', negatable: true, help: 'Demo' },
  },
  examples: [],
} as const satisfies Verb

describe('the options of a verb', () => {
  it('C11.6 are read by its table, in any order', () => {
    const args = [
      'GET',
      '--client',
      'a',
      '-H',
      'X: y',
      'f',
      '--scope=a',
      '--no-demo',
      '--scope',
      'b',
      '--json',
    ]
    expect(parse(VERB, args)).toEqual({
      values: { client: 'a', header: 'X: y', scope: ['a', 'b'], demo: false, json: true },
      positionals: ['GET', 'f'],
    })
  })

  it.each([
    [['--until', '30m', '--overlap', '7d', '--wait', '90', '--limit', '1000']],
    [['--until', '2026-02-01T20:00+10:00', '--wait', '10m', '--url', 'http://127.0.0.1:9090']],
    [['--client=-x', '--role', 'view', '--', '--json']],
    [['--client', '-']],
  ])('C11.6 take values of their kinds: %j', (args) => {
    expect(() => parse(VERB, ['GET', ...args])).not.toThrow()
  })

  it.each([
    [['--clint', 'a'], 'there is no option "--clint" here — did you mean "--client"?'],
    [['--xyz=hunter2'], 'there is no option "--xyz" here'],
    [['-q'], 'there is no option "-q" here'],
    [['--no-json'], 'there is no option "--no-json" here'],
    [['--no-dem'], 'there is no option "--no-dem" here — did you mean "--no-demo"?'],
    [['--json=yes'], '--json takes no value'],
    [['--client'], '--client: expected ID, got nothing'],
    [
      ['--client', '--json'],
      '--client: expected ID, got an option; a value that begins with "-" is written --client=-…',
    ],
    [['--client', 'a', '--client', 'b'], '--client stands twice, and can have one value only'],
    [['--role', 'vieww'], '--role: expected one of view, operate, got "vieww" — did you mean "view"?'],
    [
      ['--until', 'yesterday'],
      '--until: expected a time with its zone, such as 2026-02-01T20:00+10:00, or a duration from now, such as 30m, got "yesterday"',
    ],
    [['--until', '2026-02-01T20:00'], '--until: expected a time with its zone'],
    [['--overlap', '1 day'], '--overlap: expected a duration such as 30s, 10m, 12h or 7d, got "1 day"'],
    [
      ['--wait', 'soon'],
      '--wait: expected a duration such as 90s or 10m, or a number of seconds, got "soon"',
    ],
    [['--limit', '1001'], '--limit: expected a number from 1 to 1000, got "1001"'],
    [['--url', 'ftp://x'], '--url: expected a URL such as http://127.0.0.1:9090, got "ftp://x"'],
  ])('C11.6 that are wrong are told in words: %j', (args, told) => {
    expect(() => parse(VERB, ['GET', ...args])).toThrow(told)
  })

  it('C11.6 arguments too few or too many are told, and not repeated: one may be a password', () => {
    expect(() => parse(VERB, [])).toThrow('expected METHOD [FILE…], got nothing')
    const one = { ...VERB, arguments: [{ name: 'ID' }] }
    expect(() => parse(one, ['a', 'hunter2'])).toThrow(/^expected ID, got 2 arguments$/)
    expect(() => parse({ ...VERB, arguments: [] }, ['hunter2'])).toThrow(
      /^expected options only, got an argument$/,
    )
  })
})

describe('postern', () => {
  it.each([
    [['maintenance', 'on', '--until', 'yesterday'], '--until: expected a time with its zone'],
    [
      ['maintenance', 'stauts'],
      'expected one of on, plan, off, status, got "stauts" — did you mean "status"?',
    ],
    [['maintenance'], 'expected one of on, plan, off, status\n'],
    [['revoke', '--clint', 'a'], 'did you mean "--client"?'],
  ])('C11.6 refuses %j with exit code 2, and names the help', async (args, told) => {
    const { code, stdout, stderr } = await runVerb(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`postern: ${told.startsWith('did') ? '' : told}`)
    expect(stderr).toContain(told)
    expect(stderr).toMatch(/^(Options|Verbs) and examples: postern [a-z ]+ --help$/m)
    expect(stderr).not.toMatch(/[[\]{}^$]\{|\^\[/)
  })

  it.each([['--help'], ['-h']])('C11.6 tells by %s what a verb takes, with examples', async (flag) => {
    const { code, stdout } = await runVerb(['maintenance', 'on', flag])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^Usage: postern maintenance on \[OPTIONS\]\n\nClose the service/)
    expect(stdout).toMatch(/^ {2}--until TIME +When it opens again/m)
    expect(stdout).toMatch(/^ {2}postern maintenance on --business ACME/m)
    expect(stdout.split('\n').every((line) => line.length <= 102)).toBe(true)
  })
})
