import { describe, expect, it } from 'vitest'
import { FAMILIES } from '../../../../src/watch/metrics/metric-families.ts'
import { familyText, sampleName } from '../../../../src/watch/metrics/text-format.ts'

describe('the text format of Prometheus', () => {
  it('C11.1 escapes what would end a label value or a line, such as the pattern of a path', () => {
    expect(sampleName('postern_x', [])).toBe('postern_x')
    const name = sampleName('postern_x', [
      ['action', 'a/{id:/\\d+"/}'],
      ['client', 'two\nlines'],
    ])
    expect(name).toBe('postern_x{action="a/{id:/\\\\d+\\"/}",client="two\\nlines"}')
  })

  it('C11.1 gives each family its help and type, also one without samples', () => {
    expect(familyText(FAMILIES.logDropped, ['postern_log_dropped_total 0'])).toBe(
      '# HELP postern_log_dropped_total Lines of the log that could not be kept.\n' +
        '# TYPE postern_log_dropped_total counter\npostern_log_dropped_total 0\n',
    )
    expect(familyText(FAMILIES.shedding, [])).toMatch(/^# HELP .*\n# TYPE postern_shedding gauge\n$/)
  })

  it('C11.1 needs no escapes in the help texts of the table', () => {
    for (const { help } of Object.values(FAMILIES)) expect(help).not.toMatch(/[\\\n]/)
  })
})
