import { writeFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { Alias } from 'yaml'
import { loadFile } from '../../../src/base/config/load.ts'
import {
  duration,
  flag,
  kinds,
  list,
  listenAddress,
  mapOf,
  name,
  optional,
  path,
  secret,
  section,
  size,
  template,
  text,
  wholeNumber,
  type TSchema,
} from '../../../src/base/config/schema.ts'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'

const DESCRIBED = { description: 'A key.' }

/** Loads one file's text; problems as printed, with the folder cut off. */
function load(schema: TSchema, source: string, env: Record<string, string> = {}, others = {}) {
  const file = configFiles({ 'a.yaml': source, ...others })
  const { value, problems: found } = loadFile(schema, file('a.yaml'), env)
  const problems = reportText(found)
    .replaceAll(`${file('')}/`, '')
    .split('\n')
    .filter(Boolean)
  return { value, problems, file }
}

const server = section({
  listen: listenAddress({ ...DESCRIBED, default: '127.0.0.1:8080' }),
  timeout: duration({ ...DESCRIBED, default: '30s' }),
  limit: size({ ...DESCRIBED, default: '1MiB' }),
  tls: optional(flag(DESCRIBED)),
})

describe('loading a configuration', () => {
  it('converts durations and sizes, and fills defaults in', () => {
    const { value, problems } = load(section({ server }), 'server: { timeout: 250ms }')
    expect(problems).toEqual([])
    expect(value).toEqual({ server: { listen: '127.0.0.1:8080', timeout: 250, limit: 1024 ** 2 } })
  })

  it('takes a section with nothing after it as an empty one, and such a key as left out', () => {
    const { value } = load(section({ server }), 'server:\n  timeout:\n')
    expect(value).toEqual({ server: { listen: '127.0.0.1:8080', timeout: 30_000, limit: 1024 ** 2 } })
    expect(load(section({ server }), 'server:\n').problems).toEqual([])
  })

  it('reports every problem, with its file, line and key path, what is expected and what was given', () => {
    const schema = section({
      server,
      ports: list(wholeNumber({ ...DESCRIBED, minimum: 1 }), DESCRIBED),
      on: flag(DESCRIBED),
    })
    const { problems } = load(
      schema,
      'server:\n  timeout: 30\n  listen: nowhere\nports: [1, 0, x]\non: yes\n',
    )
    expect(problems).toEqual([
      'a.yaml:2  server.timeout  expected a duration above zero, such as "30s", "250ms" or "15m", got 30',
      'a.yaml:3  server.listen  expected host:port, such as "127.0.0.1:8080", got "nowhere"',
      'a.yaml:4  ports[1]  expected a whole number, at least 1, got 0',
      'a.yaml:4  ports[2]  expected a whole number, at least 1, got "x"',
      'a.yaml:5  on  expected true or false, got "yes"',
    ])
  })

  it('reports more than eight problems', () => {
    const schema = section({ ports: list(wholeNumber(DESCRIBED), DESCRIBED) })
    expect(load(schema, `ports: [${Array(20).fill('x').join(', ')}]`).problems).toHaveLength(20)
  })

  it('refuses an unknown key and suggests the one that was meant', () => {
    const { problems } = load(section({ server }), 'server: { lisen: "127.0.0.1:1" }')
    expect(problems).toEqual(['a.yaml:1  server.lisen  is not a known key here — did you mean "listen"?'])
  })

  it('tells where a key belongs that a section below has', () => {
    const upstream = section({ path: optional(name(DESCRIBED)) }, { default: {}, description: 'd' })
    const methods = section({ GET: section({ upstream }, { default: {}, description: 'd' }) })
    const { problems } = load(section({ methods }), 'upstream: { path: a }\nmethods: { path: b }')
    expect(problems.map((problem) => problem.replace(/^\S+ +/, ''))).toEqual([
      'upstream  is not a known key here — did you mean "methods.GET.upstream"?',
      'methods.path  is not a known key here — did you mean "GET.upstream.path"?',
    ])
  })

  it('names the known keys where an unknown one resembles none', () => {
    const { problems } = load(section({ server }), 'server: { zzz: 1 }')
    expect(problems[0]).toContain('known keys: listen, timeout, limit, tls')
  })

  it('reports a missing key on the line of its section', () => {
    const { problems } = load(
      section({ a: section({ b: name(DESCRIBED), c: flag(DESCRIBED) }) }),
      '\na:\n  c: true\n',
    )
    expect(problems).toEqual([
      'a.yaml:2  a.b  is missing: expected a name of letters, digits, ".", "_" and "-"',
    ])
  })

  it('refuses a repeated key, and says where it is first', () => {
    const { problems } = load(section({ a: flag(DESCRIBED) }), 'a: true\n\na: false\n')
    expect(problems).toEqual(['a.yaml:3  a  is repeated (first on line 1)'])
  })

  it('checks the shape that kind names, and no other', () => {
    const backend = kinds({
      memory: section({ data: text(DESCRIBED) }),
      http: section({ target: text(DESCRIBED), retries: wholeNumber({ ...DESCRIBED, default: 1 }) }),
    })
    const schema = section({ backends: mapOf(backend, DESCRIBED) })
    expect(load(schema, 'backends: { a: { kind: http, target: x } }').value).toEqual({
      backends: { a: { kind: 'http', target: 'x', retries: 1 } },
    })
    expect(
      load(schema, 'backends:\n  a: { kind: http, targe: x }\n  b: { kind: htp }\n  c: {}\n').problems,
    ).toEqual([
      'a.yaml:2  backends.a.targe  is not a known key here — did you mean "target"?',
      'a.yaml:2  backends.a.target  is missing: expected a text',
      'a.yaml:3  backends.b.kind  expected one of "memory", "http", got "htp" — did you mean "http"?',
      'a.yaml:4  backends.c.kind  is missing: expected one of "memory", "http"',
    ])
  })

  it('reports the branch of a union that was probably meant', () => {
    const one = (key: string) =>
      section({ [key]: list(text(DESCRIBED), DESCRIBED), more: optional(flag(DESCRIBED)) })
    const schema = section({ rule: { anyOf: [one('any'), one('all')] } })
    expect(load(schema, 'rule: { all: [x] }').value).toEqual({ rule: { all: ['x'] } })
    expect(load(schema, 'rule: { all: [1] }').problems).toEqual([
      'a.yaml:1  rule.all[0]  expected a text, got 1',
    ])
    expect(load(schema, 'rule: x').problems).toEqual(['a.yaml:1  rule  expected a section of keys, got "x"'])
  })

  it('keeps __proto__ as plain data in maps', () => {
    const { value } = load(
      section({ m: mapOf(text(DESCRIBED), { ...DESCRIBED, keys: '.' }) }),
      'm: { __proto__: x }',
    )
    expect(Object.keys((value as { m: object }).m)).toEqual(['__proto__'])
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })
})

describe('secrets and references', () => {
  const schema = section({ token: secret(DESCRIBED), target: text({ ...DESCRIBED, default: 'none' }) })

  it('takes a secret from a file beside the configuration, without its line end', () => {
    const { value } = load(schema, 'token: { file: secrets/token }', {}, { 'secrets/token': 's3cret\n' })
    expect(value).toEqual({ token: 's3cret', target: 'none' })
  })

  it.each([
    ['LF at the end', 's3cret\n'],
    ['CRLF at the end', 's3cret\r\n'],
    ['a byte order mark', '\ufeffs3cret'],
  ])('C11.6 takes a secret from a file with %s as the same secret', (_which, content) => {
    const { value } = load(schema, 'token: { file: token }', {}, { token: content })
    expect(value).toEqual({ token: 's3cret', target: 'none' })
  })

  it.each([
    ['a blank at its end', 's3cret \n', 'it begins or ends with white space'],
    ['a blank at its start', '\u00a0s3cret', 'it begins or ends with white space'],
    ['a second line end', 's3cret\n\n', 'it has more than one line, which no header can hold'],
    ['two lines', 's3cret\r\nmore', 'it has more than one line, which no header can hold'],
    ['a control character', 's3\u001bcret', 'it holds a control character, which no header can hold'],
  ])('C11.6 refuses a secret with %s, and names its file or variable', (_which, content, told) => {
    const source = 'token: { file: token }\nother: { env: T }'
    const both = section({ token: secret(DESCRIBED), other: template(DESCRIBED) })
    const { problems } = load(both, source, { T: content.replace(/\n$/, '') }, { token: content })
    expect(problems).toEqual([
      `a.yaml:1  token  names the file "token", whose content can be no secret: ${told}`,
      `a.yaml:2  other  names the environment variable T, whose content can be no secret: ${told}`,
    ])
    expect(problems.join()).not.toContain('s3')
  })

  it('C11.6 leaves a text that is no secret as it is in its file, but for the last line end', () => {
    const { value } = load(
      section({ note: text(DESCRIBED) }),
      'note: { file: note }',
      {},
      { note: ' a\n b \n' },
    )
    expect(value).toEqual({ note: ' a\n b ' })
  })

  it.each([
    ['Latin-1', Buffer.from('one\ncaf\u00e9\n', 'latin1'), 'line 2 is not UTF-8: save the file as UTF-8'],
    ['UTF-16', Buffer.from('\ufeffone', 'utf16le'), 'it is UTF-16: save it as UTF-8'],
    [
      'UTF-16 without a mark',
      Buffer.from('one', 'utf16le'),
      'line 1 holds a NUL, as UTF-16 does: save the file as UTF-8',
    ],
  ])('C11.6 refuses a file of %s, by its line', (_which, content, why) => {
    const referred = load(schema, 'token: { file: token }', {}, { token: content })
    expect(referred.problems).toEqual([
      `a.yaml:1  token.file  names the file "token", which cannot be read (${why})`,
    ])
    const own = load(schema, 'extends: base.yaml', {}, { 'base.yaml': content })
    const line = /line (\d)/.exec(why)?.[1] ?? '1'
    expect(own.problems).toContain(`base.yaml:${line}  this file  cannot be read (${why})`)
  })

  it('takes values from the environment, else their default', () => {
    const { value } = load(schema, 'token: { env: T }\ntarget: { env: U, default: here }', { T: 's3cret' })
    expect(value).toEqual({ token: 's3cret', target: 'here' })
  })

  it('reports a variable or a file that does not exist', () => {
    const { problems } = load(schema, 'token: { env: T }\ntarget: { file: nothing }')
    expect(problems).toEqual([
      'a.yaml:1  token.env  names the environment variable T, which is not set — set it, or give a default',
      'a.yaml:2  target.file  names the file "nothing", which cannot be read (ENOENT: there is no such file or folder)',
    ])
  })

  it('refuses a secret that is written in the file as it is, and never shows it', () => {
    const { problems } = load(schema, 'token: hunter2')
    expect(problems).toEqual(['a.yaml:1  token  expected { file: … } or { env: … }, got a text (not shown)'])
  })

  it.each([
    [
      'a list that should hold secrets',
      section({ keys: list(secret({ ...DESCRIBED, plain: true }), DESCRIBED) }),
      'keys: hunter2',
    ],
    [
      'a key whose name says secret',
      section({ clientSecret: wholeNumber(DESCRIBED) }),
      'clientSecret: hunter2',
    ],
    [
      'a referenced value that does not fit',
      section({ target: listenAddress(DESCRIBED) }),
      'target: { env: T }',
    ],
    ['invalid YAML', section({ password: text(DESCRIBED) }), 'password: "hunter2'],
    ['a flow mapping gone wrong', section({ password: text(DESCRIBED) }), 'password: {hunter2: [hunter2}'],
    [
      'a scalar where none may stand',
      section({ password: text(DESCRIBED) }),
      'password: x\n  hunter2: y\nhunter2',
    ],
    ['an unknown alias', section({ password: text(DESCRIBED) }), 'password: *hunter2'],
    ['an unknown tag', section({ password: text(DESCRIBED) }), 'password: !hunter2 x'],
  ])('never shows what was given: %s', (_, of, source) => {
    const { problems } = load(of, source, { T: 'hunter2' })
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.join('\n')).not.toContain('hunter2')
  })

  it('makes file names absolute, from the folder of the file that names them', () => {
    const { value, file } = load(section({ data: path(DESCRIBED) }), 'data: sub/data.json')
    expect(value).toEqual({ data: file('sub/data.json') })
  })
})

describe('YAML', () => {
  const words = section({
    a: list(text(DESCRIBED), DESCRIBED),
    b: optional(list(text(DESCRIBED), DESCRIBED)),
  })

  it('follows aliases', () => {
    expect(load(words, 'a: &x [one]\nb: *x').value).toEqual({ a: ['one'], b: ['one'] })
  })

  it('takes the last of several anchors of one name before the alias', () => {
    expect(load(words, 'a: [&x one, *x, &x two, *x]\nb: [*x, &x three]').value).toEqual({
      a: ['one', 'one', 'two', 'two'],
      b: ['two', 'three'],
    })
  })

  it('follows aliases without a walk through the document for each', () => {
    const walk = vi.spyOn(Alias.prototype, 'resolve')
    onTestFinished(() => walk.mockRestore())
    const items = Array.from({ length: 2000 }, (_, i) => (i % 10 === 0 ? '- *x' : `- v${i}`)).join('\n')
    const { value, problems } = load(words, `b: [&x one]\na:\n${items}`)
    expect(problems).toEqual([])
    expect(value).toMatchObject({ a: expect.arrayContaining(['one', 'v1999']) })
    expect(walk).not.toHaveBeenCalled()
  })

  it('bounds what aliases expand to', () => {
    const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
    for (let i = 1; i < 12; i++)
      bomb.push(
        `a${i}: &a${i} [${Array(10)
          .fill(`*a${i - 1}`)
          .join(', ')}]`,
      )
    const { problems } = load(words, bomb.join('\n'))
    expect(problems.filter((problem) => problem.includes('uses more than 1000 aliases'))).toHaveLength(1)
  })

  it('bounds depth, an alias that holds itself included', () => {
    expect(load(words, 'a: &x [*x]').problems.join('\n')).toContain('nested deeper than')
    expect(load(words, `a: ${'['.repeat(100)}${']'.repeat(100)}`).problems.join('\n')).toContain(
      'nested deeper than',
    )
  })

  it.each([
    ['lists', '[', ']'],
    ['maps', '{a: ', '}'],
    ['lists in one line', '- ', ''],
  ])('bounds the depth of %s that are nested thousands of levels deep', (_, open, close) => {
    const { problems } = load(words, `a:\n  ${open.repeat(10_000)}${close.repeat(10_000)}\n`)
    expect(problems).toEqual([expect.stringContaining('nested deeper than 80 levels')])
  })

  it('says of a merge key that there are none, in one problem at its line', () => {
    const schema = section({ one: server, other: server })
    for (const source of [
      'one: &a { timeout: 1s }\nother:\n  <<: *a\n  unknown: 1\n',
      'one: { timeout: 1s }\nother:\n  <<: { timeout: 2s }\n',
    ]) {
      const { problems } = load(schema, source)
      expect(problems).toHaveLength(1)
      expect(problems[0]).toMatch(/a\.yaml:3.*other\["<<"\].*is a merge key, which YAML 1\.2 does not have/)
    }
    const { value, problems } = load(mapOf(text(DESCRIBED), { ...DESCRIBED, keys: '^.*$' }), '"<<": x\n')
    expect([value, problems]).toEqual([{ '<<': 'x' }, []])
  })

  it('takes a list that may stand in a map of its own from there too', () => {
    const schema = section({ ports: list(wholeNumber(DESCRIBED), { ...DESCRIBED, within: 'keys' }) })
    for (const source of ['ports: [1, 2]', 'ports: { keys: [1, 2] }'])
      expect(load(schema, source)).toMatchObject({ value: { ports: [1, 2] }, problems: [] })
    for (const source of ['ports: { keys: [1], more: 1 }', 'ports: { key: [1] }', 'ports: { keys: 1 }'])
      expect(load(schema, source).problems).toHaveLength(1)
  })

  it('takes an empty file as an empty map, and refuses several documents', () => {
    expect(load(section({}), '').problems).toEqual([])
    expect(load(section({}), 'a: 1\n---\nb: 2\n').problems[0]).toContain('several YAML documents')
  })

  it('says that a file cannot be read', () => {
    const { problems } = loadFile(section({}), '/nowhere/a.yaml', {})
    expect(reportText(problems)).toBe(
      '/nowhere/a.yaml:1  this file  cannot be read (ENOENT: there is no such file or folder)\n',
    )
  })

  it('finds repeated keys of a large map', () => {
    const many = Array.from({ length: 5000 }, (_, i) => `  k${i}: v`).join('\n')
    const { problems } = load(section({ m: mapOf(text(DESCRIBED), DESCRIBED) }), `m:\n${many}\n  k7: again\n`)
    expect(problems).toEqual(['a.yaml:5002  m.k7  is repeated (first on line 9)'])
  })
})

describe('a file that is read again', () => {
  const schema = section({ ports: list(wholeNumber(DESCRIBED), DESCRIBED) })

  it('gives what it has then, and every problem that it has then', () => {
    const file = configFiles({ 'a.yaml': 'extends: b.yaml\n', 'b.yaml': 'ports: [1]\n' })
    const read = () => {
      const { value, problems } = loadFile(schema, file('a.yaml'), {})
      return problems.failed ? problems.list.map(({ message }) => message) : value
    }
    const twice = () => [read(), read()]
    expect(twice()).toEqual([{ ports: [1] }, { ports: [1] }])
    writeFileSync(file('b.yaml'), 'ports: [2]\n')
    expect(twice()).toEqual([{ ports: [2] }, { ports: [2] }])
    for (const [text, problem] of [
      ['ports: [1', 'is not valid YAML'],
      ['ports: [x]', 'expected a whole number'],
    ] as const) {
      writeFileSync(file('b.yaml'), `${text}\n`)
      expect(twice()).toEqual([[expect.stringContaining(problem)], [expect.stringContaining(problem)]])
    }
    writeFileSync(file('b.yaml'), 'ports: [1]\n')
    expect(read()).toEqual({ ports: [1] })
  })
})

describe('extends', () => {
  const schema = section({
    a: mapOf(text(DESCRIBED), DESCRIBED),
    l: list(text(DESCRIBED), { ...DESCRIBED, default: [] }),
    data: optional(path(DESCRIBED)),
  })

  it('lays a file over another: maps merge, lists replace, nothing takes away', () => {
    const base = 'a: { one: "1", two: "2", three: "3" }\nl: [x, y]\ndata: d\n'
    const { value, file } = load(
      schema,
      'extends: sub/base.yaml\na: { two: zwei, three: }\nl: [z]\n',
      {},
      { 'sub/base.yaml': base },
    )
    expect(value).toEqual({ a: { one: '1', two: 'zwei' }, l: ['z'], data: file('sub/d') })
  })

  it('reports problems with the file and line where they are written', () => {
    const { problems } = load(
      schema,
      'extends: base.yaml\na: { y: 2 }\n',
      {},
      { 'base.yaml': '\na: { x: 1 }\n' },
    )
    expect(problems).toEqual([
      'a.yaml:2  a.y  expected a text, got 2',
      'base.yaml:2  a.x  expected a text, got 1',
    ])
  })

  it('refuses a file that extends itself', () => {
    expect(load(schema, 'extends: a.yaml\na: {}').problems.join('\n')).toContain('extends itself')
  })
})
