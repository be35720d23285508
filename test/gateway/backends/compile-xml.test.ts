import { describe, expect, it } from 'vitest'
import type { XmlSection } from '../../../src/gateway/backends/forward/schema/answer-schema.ts'
import {
  compileOperationXml,
  compileXml,
  type XmlContext,
} from '../../../src/gateway/backends/forward/compile-answers.ts'
import type { XmlSetting } from '../../../src/gateway/backends/forward/rules.ts'
import { pathText, Problems } from '../../../src/base/config/problems.ts'

const CONTEXT: XmlContext = { format: 'xml', payload: 'bare', inherited: undefined }
const AT = ['backends', 'funds', 'xml']

interface Compiled {
  readonly setting: XmlSetting | undefined
  /** `path: message` of each problem, the path from the section on. */
  readonly problems: readonly string[]
}

const reported = ({ list: problems }: Problems): readonly string[] =>
  problems.map(({ path, message }) => `${pathText(path.slice(AT.length))}: ${message}`)

function compile(section: XmlSection, context: Partial<XmlContext> = {}): Compiled {
  const report = new Problems()
  const setting = compileXml(section, { ...CONTEXT, ...context }, AT, report)
  return { setting, problems: reported(report) }
}
const plain = (section: XmlSection): Compiled => compile({ dialect: 'plain', ...section })

describe('the section xml', () => {
  it('C7.7 without `dialect: plain` is Postern’s own dialect, and says nothing else', () => {
    expect(compile({ dialect: 'postern' })).toEqual({
      setting: { section: { dialect: 'postern' }, rules: undefined },
      problems: [],
    })
    expect(compile({ root: 'a', arrays: ['a/b'] }).problems).toEqual([
      'root: needs `dialect: plain` beside it',
      'arrays: needs `dialect: plain` beside it',
    ])
  })

  it('C7.7 makes one tree of its paths', () => {
    const { setting, problems } = plain({
      arrays: ['a/b', 'a/b/c'],
      numbers: ['a/b/c', 'a/@d'],
      booleans: ['a/b/c/@e'],
      namespaces: 'strip',
    })
    expect(problems).toEqual([])
    expect(setting?.rules?.stripNamespaces).toBe(true)
    const a = setting?.rules?.paths.children.get('a')
    const c = a?.children.get('b')?.children.get('c')
    expect(a?.children.get('b')).toMatchObject({ isArray: true, type: undefined })
    expect(a?.children.get('@d')).toMatchObject({ isArray: false, type: 'number' })
    expect(c).toMatchObject({ isArray: true, type: 'number' })
    expect(c?.children.get('@e')).toMatchObject({ type: 'boolean' })
  })

  it('C7.7 can be sent to another thread', () => {
    const { setting } = plain({ root: 'a', attributes: { b: 'c' }, arrays: ['a/b'] })
    expect(structuredClone(setting?.rules)).toEqual(setting?.rules)
  })

  it.each([
    ['JSON', { format: 'json' }, 'dialect: is plain, which needs `format: xml`'],
    ['envelopes', { payload: 'envelope' }, 'dialect: is plain, but an envelope is XML of Postern'],
  ] as const)('C7.7 is refused for a service that speaks %s', (_, context, problem) => {
    expect(compile({ dialect: 'plain' }, context).problems).toEqual([expect.stringContaining(problem)])
  })

  it.each<[XmlSection, string]>([
    [{ root: '1st' }, 'root: is no name of an XML element'],
    [{ root: 'a:b:c' }, 'root: is no name of an XML element'],
    [{ root: 'f:a' }, 'root: cannot be written as XML: the prefix of f:a is not declared'],
    [{ attributes: { b: 'c' } }, 'attributes: are of the element that `root` names; expected `root` too'],
    [{ root: 'a', attributes: { 'f:b': 'c' } }, 'attributes: cannot be written as XML: the prefix of f:b'],
    [{ root: 'a', attributes: { '1b': 'c' } }, 'attributes["1b"]: is no name of an XML attribute'],
    [{ root: 'a', attributes: { b: '\0' } }, 'attributes.b: holds a character that XML cannot'],
    [{ root: 'a', attributes: { 'xmlns:xml': 'urn:b' } }, 'attributes["xmlns:xml"]: the namespace'],
    [{ root: 'a', attributes: { 'xmlns:xmlns': 'urn:b' } }, 'attributes["xmlns:xmlns"]: the prefix xmlns'],
    [
      { root: 'a', attributes: { 'xmlns:b': 'u', 'xmlns:c': 'u', 'b:d': '', 'c:d': '' } },
      'attributes: cannot be written as XML: the attribute c:d stands twice',
    ],
    [{ arrays: ['Funds'] }, 'arrays[0]: names the root element, of which there is one'],
    [{ arrays: ['a/@b'] }, 'arrays[0]: names an attribute, and an element has each attribute once'],
    [{ numbers: ['@b'] }, 'numbers[0]: names an attribute without an element'],
    [{ numbers: ['a/@b/c'] }, 'numbers[0]: holds @b, which is no name of an XML element'],
    [{ numbers: ['a/b c'] }, 'numbers[0]: holds b c, which is no name of an XML element'],
    [{ numbers: ['a/f:b'], namespaces: 'strip' }, 'numbers[0]: holds a prefix, and `namespaces: strip`'],
    [{ numbers: ['a/b'], booleans: ['a/b'] }, 'booleans[0]: is listed as a number too'],
    [{ numbers: ['a'], booleans: ['a/b'] }, 'booleans[0]: stands in what another path says is a number'],
    [{ arrays: ['a/b/c'], numbers: ['a/b'] }, 'numbers[0]: is a number, but another path stands in it'],
  ])('C7.7 %j is refused', (section, problem) => {
    expect(plain(section).problems).toEqual([expect.stringContaining(problem)])
  })
})

describe('the section xml of an operation', () => {
  const backend: XmlContext = { ...CONTEXT, inherited: { dialect: 'plain', numbers: ['a/b'], root: 'a' } }
  const compileOperation = (given: Parameters<typeof compileOperationXml>[0]): Compiled => {
    const report = new Problems()
    return {
      setting: compileOperationXml(given, backend, AT.slice(0, -1), report),
      problems: reported(report),
    }
  }

  it('C7.7 is its backend’s where it says nothing', () => {
    expect(compileOperation({})).toEqual({ setting: undefined, problems: [] })
    expect(compileOperation({ format: 'json' })).toEqual({ setting: undefined, problems: [] })
  })

  it('C7.7 has the keys of its backend that it leaves out', () => {
    const { setting, problems } = compileOperation({ xml: { root: 'c' } })
    expect(problems).toEqual([])
    expect(setting?.section).toEqual({ dialect: 'plain', numbers: ['a/b'], root: 'c' })
    expect(setting?.rules?.root).toBe('c')
    expect(compileOperation({ xml: { dialect: 'postern' } }).setting?.rules).toBeUndefined()
  })

  it('C7.7 may be plain where its backend speaks JSON', () => {
    const problems = new Problems()
    const json: XmlContext = { ...CONTEXT, format: 'json' }
    const own = compileOperationXml({ format: 'xml', xml: { dialect: 'plain' } }, json, AT, problems)
    expect(own?.rules).toBeDefined()
    expect(reported(problems)).toEqual([])
  })

  it('C7.7 cannot be plain where it answers envelopes', () => {
    expect(compileOperation({ payload: 'envelope' }).problems).toEqual([
      expect.stringContaining('dialect: is plain, but an envelope'),
    ])
  })
})
