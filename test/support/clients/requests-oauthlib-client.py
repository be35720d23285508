import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from requests_oauthlib import OAuth2Session

FUNDS, ISSUER, ORIGIN, USERINFO = (os.environ[name] for name in ('FUNDS', 'ISSUER', 'ORIGIN', 'USERINFO'))
# It takes addresses of http on no other word, not even those of loopback.
os.environ['OAUTHLIB_INSECURE_TRANSPORT'] = '1'

client = OAuth2Session(
    'ledgerline',
    scope=['openid', 'profile', 'fund.read', 'target:b'],
    redirect_uri=f'{ORIGIN}/callback',
)
login_url, state = client.authorization_url(f'{ISSUER}/connect/authorize')


class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/login':
            self.send_response(302)
            self.send_header('Location', login_url)
            self.end_headers()
            return
        client.fetch_token(
            f'{ISSUER}/connect/token',
            authorization_response=f'{ORIGIN}{self.path}',
            client_secret='ledgerline-secret',
        )
        name = client.get(USERINFO).json()['name']
        body = json.dumps({'name': name, 'funds': client.get(FUNDS).json()}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Pages).serve_forever()
