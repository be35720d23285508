import { describe, expect, it } from 'vitest'
import { html } from '../../../src/identity/pages/layout.ts'

describe('C6.2.3 html', () => {
  it('T6 escapes whatever is put in, in text and in attributes', () => {
    const text = `<b a='1' c="2">&amp;`
    expect(html`<p title="${text}">${text}</p>`.toString()).toBe(
      '<p title="&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;">&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;amp;</p>',
    )
  })

  it('C6.2.3 takes other templates as they are, lists one after the other, and nothing for nothing', () => {
    const items = ['a', '<'].map((item) => html`<b>${item}</b>`)
    const nothing = [false, undefined] as const
    expect(html`<i>${items}${nothing}${0}</i>`.toString()).toBe('<i><b>a</b><b>&lt;</b>0</i>')
  })

  it('T6 takes nothing that merely looks like a template', () => {
    const fake = { toString: () => '<b>' } as unknown as string
    expect(html`${fake}`.toString()).toBe('&lt;b&gt;')
  })
})
