import os

from flask import Flask
from flask_dance.consumer import OAuth2ConsumerBlueprint

FUNDS, ISSUER, USERINFO = (os.environ[name] for name in ('FUNDS', 'ISSUER', 'USERINFO'))
# It takes addresses of http on no other word, not even those of loopback.
os.environ['OAUTHLIB_INSECURE_TRANSPORT'] = '1'

app = Flask(__name__)
app.secret_key = 'a long random text'

postern = OAuth2ConsumerBlueprint(
    'postern',
    __name__,
    client_id='ledgerline',
    client_secret='ledgerline-secret',
    scope=['openid', 'profile', 'fund.read', 'target:b'],
    authorization_url=f'{ISSUER}/connect/authorize',
    token_url=f'{ISSUER}/connect/token',
)
app.register_blueprint(postern, url_prefix='/login')


@app.get('/')
def page():
    return {'name': postern.session.get(USERINFO).json()['name'], 'funds': postern.session.get(FUNDS).json()}


app.run('127.0.0.1', int(os.environ['PORT']))
