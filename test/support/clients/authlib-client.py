import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

FUNDS, ISSUER, ORIGIN, USERINFO = (os.environ[name] for name in ('FUNDS', 'ISSUER', 'ORIGIN', 'USERINFO'))

client = OAuth2Session(
    'ledgerline',
    'ledgerline-secret',
    scope='openid profile fund.read target:b',
    redirect_uri=f'{ORIGIN}/callback',
    code_challenge_method='S256',
)
verifier = generate_token(48)
login_url, state = client.create_authorization_url(
    f'{ISSUER}/connect/authorize', code_verifier=verifier, nonce=generate_token()
)


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
            state=state,
            code_verifier=verifier,
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
