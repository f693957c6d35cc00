"""What must stay: ordinary text that looks a little like something secret or personal."""

from __future__ import annotations

import pytest

from theodolite.redactors.rules import RuleRedactor

EXAMPLES = r"""
    The meeting is on 2024-05-08 at 10:30, in room 12.
    2024-05-08T10:30:00.123456Z
    2024-05-08 10:30:00+02:00
    08.05.2024 10:30
    05/08/2024
    01-02-2024
    20240508103000
    Wed, 08 May 2024 10:30:00 +0000
    10:30-12:00, 14:00-15:30
    00:1a:2b:3c:4d:5e
    epoch 1732900000
    epoch 1732900000123
    epoch 1732900000.123456
    1732900000000000000 ns
    order 4155552671
    order no. 1234567890
    order #123-456-7890
    invoice 112-1234567-1234567
    ISBN 978-3-16-148410-0
    EAN 4006381333931
    tracking 1Z999AA10123456784
    ticket JIRA-12345, PR #4821
    card ending in 4242
    4111 1111 1111 1112
    1234 5678 9012 3456
    0.4111111111111111
    3.141592653589793238
    12345.67890123456789
    $1,234,567.89
    1 234 567,89 EUR
    100 000 000
    512 256 1024 2048 4096
    300 400 5000 600
    1, 22, 333, 4444, 55555
    +1, +22 and +333
    10 + 20 = 30
    a diff of +12345678 bytes
    1-800
    call 911
    Cambridge, MA 02139-4307
    Boston 02108-1234
    Hartford CT 06103-3499
    listens on 0.0.0.0 and 127.0.0.1
    Authorization: Bearer $TOKEN
    Authorization: Token {api_token}
    tokenizer: cl100k_base
    pages 211-227
    12-34-56
    DE89 3704 0044 0532 0130 01
    US133000000121212121212
    AB12 3456 7890
    000-12-3456
    666-12-3456
    900-12-3456
    123-45-0000
    123-45-6789-0
    part 12-345-6789
    v1.2.3.4
    version 1.2.3.4
    Version: 10.0.19045.1
    package==1.2.3.4
    Mozilla/5.0 (X11) Chrome/120.0.0.0 Safari/537.36
    1.2.3
    1.3.6.1.4.1.311.21.20
    256.1.1.1
    999.999.999.999
    section 1.2.3.4.5
    rows[::2], rows[1::2], rows[::-1]
    std::vector<int>, a::b, Foo::Bar
    :: and ::1
    12:30:45
    ratio 16:9
    550e8400-e29b-41d4-a716-446655440000
    id 123e4567-e89b-12d3-a456-426614174000
    commit 3f786850e387550fdab836ed7e6dc881de23001b
    sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    d41d8cd98f00b204e9800998ecf8427e
    #ff8800 and #1a2b3c
    0xdeadbeef
    https://example.com/a/b?page=2&sort=asc#top
    https://example.com:8080/users/12345678/edit
    http://localhost:3000/
    ftp://files.example.com/pub/2024/
    C:\Users\bob\Documents\report-2024.docx
    /usr/local/lib/python3.11/site-packages
    s3://bucket/key/part-00000-of-00010
    icon@2x.png
    root@localhost
    @app.route("/users")
    @dataclass(frozen=True)
    matrix a@b and a @ b
    git@github.com:org/repo.git
    npm i lodash@4.17.21
    bob at example dot com
    look (at) this [dot]
    the token limit of 4096 tokens
    max_tokens: 4096
    token: string
    tokens = text.split()
    token_count=1024, token_type: bearer
    next_token = self._next_token()
    "token": "<your token here>"
    secret santa: Emma
    the secret is patience
    secret: project-2024
    key: value
    primary_key=True, foreign_key="users.id"
    keyboard: qwerty
    api_key = os.environ["API_KEY"]
    api_key: YOUR_API_KEY
    "api_key": "my-api-key"
    def login(user: str, password: str) -> bool:
    password = getpass.getpass()
    password = self.password
    password: Optional[str] = None
    password=None
    password=$PASSWORD
    password: ${DB_PASSWORD}
    password: <password>
    password: ********
    "password": null
    "password": {"type": "string"}
    Enter your password to continue.
    The password is incorrect.
    The password is too short and must be changed.
    your password was updated yesterday
    password: required
    Forgot password? Click here.
    click this link to reset your password: https://example.com/reset
    timestamp: 2024-06-02 21:04:06.522483
    06.522483 s
    +3.140000 and +35236450.6
    see section 8.1.2.2 and rfc7231#section-7.1.1.1
    __version__ = "0.5.1.2"
    if not (user or passwd): return None
    - password: password to use with username
    self.passwd = passwd; root.open(self.at, zip_mode, pwd=pwd)
    password = auth[2]
    def extractall(self, path=None, members=None, pwd=None):
    def fallback_getpass(prompt='Password: ', stream=None):
    user_pass = '%s:%s' % (unquote(user), unquote(password))
    pwd = (self.password.encode('utf-8') if isinstance(self.password, str) else self.password)
    pw = pw + c
    'HAVE_STRUCT_PASSWD_PW_PASSWD': 1,
    __author__ = "Lars Gust\u00e4bel"
    _DD_SIGNATURE = 0x08074b50
    f"password={password}" and "password": "${PASSWORD}"
    password_length: 12, passwordless: true
    pass: 5, fail: 3
    the pass is 3 km long
    passing tests: 12
    PWD=/home/bob
    bearer of bad news
    Authorization: required
    basic understanding
    cookie: chocolate chip
    set the pin 13 to high
    spin: 1234
    the code is 404
    sk-learn, scikit-learn
    sk-learn-contrib-py-earth-extension
    task-scheduler-for-background-jobs
    risk-adjusted-return-on-capital-model
    ghp_short
    AKIA is a prefix
    -----BEGIN CERTIFICATE-----
    -----BEGIN PUBLIC KEY-----
    eyJ is how base64 of {" begins
    gpt-4o-2024-05-13
    claude-3-5-sonnet-20241022
    meta-llama/Llama-3.3-70B-Instruct
    for i in range(10): print(i ** 2)
    x = {"a": [1, 2, 3], "b": (4, 5)}
    SELECT id, name FROM users WHERE id IN (1001, 1002, 1003);
    lat 52.520008, lon 13.404954
    [1, 2, 3] (see [4])
    50 %, 3 °C, 12 kg, 100 km/h
    100% of 20%3 is
    A&B &amp; C &lt; D
    50 €, ½ cup, ① first, № 5
    Привет, мир! 你好世界。 नमस्ते दुनिया
    \d{3}-\d{4} and \u00e9
    [REDACTED:EMAIL] and password: [REDACTED:PASSWORD]
    [REDACTED:PHONE][REDACTED:CARD]
""".strip().split("\n")


@pytest.mark.parametrize("line", [line.strip() for line in EXAMPLES])
def test_ordinary_text_stays_as_it_is(line: str) -> None:
    assert RuleRedactor().text(line) == line
