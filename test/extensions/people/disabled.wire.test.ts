import { describe, expect, it } from 'vitest'
import { administered } from '../../support/administered.ts'
import { postForm } from '../../support/oauth.ts'
import { bearer } from '../../support/requests.ts'
import type { StartedPostern } from '../../support/start-postern.ts'
import { answersOf, puppetPeople, withPeople } from './puppet-people.ts'

const login = (service: StartedPostern, username: string) =>
  postForm(service, '/connect/token', {
    params: {
      ...{ grant_type: 'password', username, password: `${username}-password` },
      scope: 'openid offline_access business.fund.list target:b/ACME',
    },
    client: 'acme-books',
  })

const call = async ({ baseUrl }: StartedPostern, token: string): Promise<number> => {
  const url = `${baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
  return (await fetch(url, { headers: bearer(token) })).status
}

describe('C5.7 C11.5.1 a user whom code of the operator’s finds', () => {
  it('C11.5.1 is disabled by the name once they have logged in; of any other name it is told who can', async () => {
    const dora = {
      subject: 's-dora',
      username: 'dora',
      customers: ['acme-books'],
      access: { ACME: 'Administrator' },
    }
    const puppet = puppetPeople(answersOf({ dora }))
    const { service, command } = await administered({
      keeps: 'nothing',
      change: withPeople(puppet.people),
    })
    const order = (verb: string, name: string) =>
      command(['user', verb, name, '--admin-url', service.adminUrl])
    const unknown = await order('disable', 'dora')
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('those who have logged in')])
    const { status, json } = await login(service, 'dora')
    expect(status).toBe(200)
    expect(await order('disable', 'dora')).toMatchObject({ code: 0, stderr: '' })
    expect(await call(service, json.access_token)).toBe(401)
    expect((await login(service, 'dora')).json.error).toBe('invalid_grant')
    const shown = await command(['user', 'show', 'dora', '--json', '--admin-url', service.adminUrl])
    expect(JSON.parse(shown.stdout)).toMatchObject({ source: 'mark', subject: 's-dora', disabled: true })
    expect(await order('enable', 'dora')).toMatchObject({ code: 0, stderr: '' })
    expect((await login(service, 'dora')).status).toBe(200)
    puppet.stop()
  })

  it('C6.3.7 C5.7: no link sets the password of one who has logged in: it is told where that is changed', async () => {
    const dora = {
      ...{ subject: 's-dora', username: 'dora', customers: ['acme-books'] },
      access: { ACME: 'Administrator' },
    }
    const puppet = puppetPeople(answersOf({ dora }))
    const { call, service } = await administered({ keeps: 'nothing', change: withPeople(puppet.people) })
    expect((await call('POST', '/users/dora/link')).status).toBe(404)
    const params = { grant_type: 'password', username: 'dora', password: 'dora-password', scope: 'openid' }
    expect((await postForm(service, '/connect/token', { params })).status).toBe(200)
    const { body, status } = await call('POST', '/users/dora/link')
    expect([status, body.error]).toEqual([
      409,
      'User "dora" is found by `directory.people`: the password is changed in the system that has it.',
    ])
    puppet.stop()
  })
})
