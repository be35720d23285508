import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { needing } from '../support/machine.ts'
import { parsePage, readPage, recipeNames } from '../support/recipes/page.ts'
import { RECIPES } from '../support/recipes/recipes.ts'
import { runPage } from '../support/recipes/run-page.ts'
import { ROOT } from '../support/spawn-postern.ts'

/** Every page of config/recipes, as a reader would follow it: its server, its YAML, its commands. */

describe('config/recipes', () => {
  it('has a page for every server of a recipe, and a server for every page', () => {
    expect(Object.keys(RECIPES).sort()).toEqual([...recipeNames()].sort())
  })

  it('has its pages in its index', () => {
    const index = readFileSync(join(ROOT, 'config/recipes/README.md'), 'utf8')
    const linked = [...index.matchAll(/\]\((\w[\w-]*)\.md\)/g)].map((match) => match[1])
    expect(linked.sort()).toEqual([...recipeNames()].sort())
  })

  it('has a page for each name in .ci/run', () => {
    const chosen = /\(([\w|-]+)\)\\\.md works/
      .exec(readFileSync(join(ROOT, '.ci/run'), 'utf8'))?.[1]
      ?.split('|')
    expect(chosen?.length).toBeGreaterThan(1)
    expect(recipeNames()).toEqual(expect.arrayContaining(chosen ?? []))
  })

  const PAGE = '```yaml\ndemo: true\n```\n\n```sh\nPOSTERN_CONFIG=my.yaml npm start\n```\n'

  it('takes a page with all that is typed, in its order', () => {
    const page = `\`\`\`sh\nnpm run recipe x\n\`\`\`\n\n${PAGE.replace('POSTERN', 'KEY=secret POSTERN')}
\`\`\`sh\ncurl x\n\`\`\`\n\n\`\`\`json\n{}\n\`\`\`\n\n\`\`\`sql users.sql\nselect 1\n\`\`\`\n`
    expect(parsePage('x', page)).toEqual({
      name: 'x',
      configuration: 'demo: true',
      files: new Map([['users.sql', 'select 1']]),
      environment: { KEY: 'secret' },
      before: [],
      after: [{ command: 'curl x', output: '{}' }],
      received: [],
    })
  })

  it.each([
    ['an answer to no command', `${PAGE}\nSo:\n\n\`\`\`json\n{}\n\`\`\`\n`],
    ['a program that is not saved', `${PAGE}\n\`\`\`js\nlet a\n\`\`\`\n`],
    ['a second configuration', `${PAGE}\n\`\`\`yaml\nworkers: 2\n\`\`\`\n`],
    ['no start', PAGE.replace('npm start', 'npm stop')],
  ])('takes no page with %s', (_what, page) => {
    expect(() => parsePage('x', page)).toThrow(/^x\.md/)
  })
})

describe.concurrent('a page of config/recipes', () => {
  for (const name of recipeNames())
    it(`${name}.md works as it stands there`, { ...needing(...(RECIPES[name]?.needs ?? [])) }, () =>
      runPage(readPage(name), RECIPES[name] ?? { needs: [] }),
    )
})
