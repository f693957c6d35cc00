"""What must go: each example is the whole text, with the part that must be replaced between « and »."""

# ruff: noqa: RUF001 - letters in disguise are what is tested
from __future__ import annotations

import re

import pytest

from theodolite.redactors.rules import RuleRedactor

EXAMPLES = {
    "EMAIL": """
        «bob@example.com»
        Write to «bob@example.com», please.
        Write to «bob.smith+news@mail.example.co.uk».
        <«bob_smith@example.io»>
        mailto:«bob@example.com»?subject=hi
        {"from": "«bob@example.com»", "to": ["«eve@example.org»"]}
        **«bob@example.com»**
        '«o'brien@example.com»'
        «bob@example.com»/«eve@example.com»
        «bob@example.com»-«eve@example.com»
        «иван@пример.рф»
        «用户@例子.公司»
        «संपर्क@डाटामेल.भारत»
        «jürgen@bücher.example»
        «jose\u0301@example.com»
        «bob@xn--bcher-kva.example»
        «"bob smith"@example.com»
        «BOB@EXAMPLE.COM»
        «bo\u200bb@exam\u200dple.com»
        «bob\u00ad@\u2060example.com»
        «ｂｏｂ＠ｅｘａｍｐｌｅ．ｃｏｍ»
        «bob＠example.com»
        «𝐛𝐨𝐛@example.com»
        «bob&#64;example.com»
        «bob&#x40;example&#46;com»
        «bob&commat;example&period;com»
        https://example.com/?to=«bob%40example.com»&x=1
        "«bob\\u0040example.com»"
        «bob\\x40example.com»
        «bob [at] example [dot] com»
        «bob(at)example(dot)com»
        «bob\u0000@example.com»
        git clone as «bob@example.com»:x
        see notes/«bob@example.com»/2024
        """,
    "PHONE": """
        «+1 415 555 2671»
        «+1 (415) 555-2671»
        «+14155552671»
        call «+1-415-555-2671», now
        tel:«+1.415.555.2671»
        «+44 20 7946 0958»
        «+44 (0)20 7946 0958»
        «+49 30 901820»
        «+49 (0) 30 / 90 18 20»
        «+49 030 901820»
        «+33 1 70 18 99 00»
        «+91 98765 43210»
        «+81 3-1234-5678»
        «+86 138 1234 5678»
        «+7 (495) 123-45-67»
        «+55 11 96123-4567»
        «+39 02 1234 5678»
        «+353 1 234 5678»
        «+800 1234 5678»
        «+1 555 123 4567»
        «+1 415 555 2671» 2024 was a good year
        «0044 20 7946 0958»
        «0049 30 901820»
        «00 33 1 70 18 99 00»
        «(415) 555-2671»
        «(415)555-2671»
        «(555) 123-4567»
        «555-123-4567»
        «415-555-2671»
        «415.555.2671»
        «415 555 2671»
        «1-800-555-0199»
        «1 (800) 555-0199»
        «415-555-2671»/«415-555-2672»
        «020 7946 0958»
        «(020) 7946 0958»
        «07700 900123»
        «030 901820»
        «030/901820»
        «(030) 901820»
        «0171-1234567»
        «01 70 18 99 00»
        «01.70.18.99.00»
        «02 5550 1234»
        «0412 345 678»
        Phone: «4155552671»
        "phone": "«4155552671»"
        Telefon «03012345678»
        fax: «555-0123»
        mobile number is «07700900123»
        «+４４ ２０ ７９４６ ０９５８»
        «+44\u00a020\u00a07946\u00a00958»
        «415‑555‑2671»
        «+٤٤ ٢٠ ٧٩٤٦ ٠٩٥٨»
        电话«+44 20 7946 0958»是
        """,
    "CARD": """
        «4111111111111111»
        «4111 1111 1111 1111»
        «4111-1111-1111-1111»
        card 12 «4111 1111 1111 1111»
        «4111 1111 1111 1111» 12/27
        name,«4111111111111111»,123
        «4222222222222»
        «4000 0000 0000 0000 006»
        «5555 5555 5555 4444»
        «2223 0031 2200 3222»
        «3782 822463 10005»
        «378282246310005»
        «3056 930902 5904»
        «6011111111111117»
        «3530111333300000»
        «6200 0000 0000 0005»
        «4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1»
        «41 11 11 11 11 11 11 11»
        «４１１１ １１１１ １１１１ １１１１»
        «4111\u00a01111\u00a01111\u00a01111»
        卡号«4111111111111111»。
        """,
    "IBAN": """
        «DE89370400440532013000»
        «DE89 3704 0044 0532 0130 00»
        «GB29NWBK60161331926819»
        «GB29 NWBK 6016 1331 9268 19»
        «gb29 nwbk 6016 1331 9268 19»
        «FR1420041010050500013M02606»
        «NO93 8601 1117 947»
        «MT84MALT011000012345MTLCAST001S»
        «CH93-0076-2011-6238-5295-7»
        to «SE3550000000054910000003», 12.00
        """,
    "SSN": """
        «123-45-6789»
        «123 45 6789»
        SSN: «123456789»
        "ssn": "«123456789»"
        social security number is «123456789»
        «123–45–6789»
        """,
    "IPV4": """
        «10.0.0.1»
        «192.168.1.254»:8080
        from «203.0.113.7», twice
        http://«203.0.113.7»/admin
        «203.0.113.0»/24
        [«203.0.113.7»]
        The host is «203.0.113.7».
        ip=«203.0.113.7», host: «203.0.113.8»
        <«203.0.113.7»>
        «1.2.3.4»
        """,
    "IPV6": """
        «2001:db8::1»
        [«2001:db8::1»]:8080
        «fe80::1»%eth0
        «2001:0db8:0000:0000:0000:ff00:0042:8329»
        «2001:DB8::FF00:42:8329».
        «::ffff:203.0.113.7»
        «64:ff9b::203.0.113.7»
        «1:2:3:4:5:6:7:8»
        host:«fd12:3456:789a::1», port 1
        «2606:4700::»
        地址«2001:db8::1»。
        """,
    "JWT": """
        «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U»
        «eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.»
        «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0»
        jwt=«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3j»&x=1
        «eyJhbGciOiJSU0EifQ.OKOawDo13gRp2ojaHV7LFp.48V1_ALb6US04U3b.5eym8TW_c8SuK0lt.XFBoMYUZodetZdvT»
        """,
    "PRIVATE_KEY": r"""
        «-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----»
        {"key": "«-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIr\n-----END EC PRIVATE KEY-----»"}
        «-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAA»
        «-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,8D3F\n\nMIIEpA»
        «-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF2\n-----END PGP PRIVATE KEY BLOCK-----»
        """,
    # The dots in the middle are taken out before use: whoever scans this repository for leaked keys finds none.
    "API_KEY": """
        «AKIA·IOSFODNN7EXAMPLE»
        «ASIA·IOSFODNN7EXAMPLE»
        «AKIA·IOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»
        «ghp_·16C7e42F292c6912E7710c838347Ae178B4a»
        «github_pat_·11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ01234567»
        https://«ghs_·16C7e42F292c6912E7710c838347Ae178B4a»@github.com/a/b
        «xoxb·-123456789012-1234567890123-abcdefABCDEF0123456789ab»
        «xoxe.xoxp·-1-Mi0yLTU4NDk3NzY»
        «xapp-·1-A0123456789-1234567890123-abcdef0123456789»
        https://«hooks.slack.com/·services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX»
        «sk-·abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL»
        «sk-proj-·Abc123Def456Ghi789Jkl012_Mno345Pqr678Stu901-T3BlbkFJVwx234»
        «sk-ant-·api03-R2D2c3poLukeLeia_HanChewieLandoYoda-Obi1Wan0Kenobi-AA»
        «sk-or-v1-·0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef»
        «AIza·SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe»
        «ya29.·a0AfH6SMBx1234567890abcdef»
        «sk_·live_4eC39HqLyjWDarjtT1zdp7dc»
        «rk_·test_4eC39HqLyjWDarjtT1zdp7dc»
        «whsec_·MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw»
        «npm_·abcdefghijklmnopqrstuvwxyz0123456789»
        «pypi-AgE·IcHlwaS5vcmcCJDU3ZTk4YzE0LTM5YzQtNGE5Mi04OTI5LTYyMTkyYzU5»
        «glpat-·abcDEF123456-_7890xy»
        «hf_·abcdefghijklmnopqrstuvwxyzABCDEFGH»
        «SG.·ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf09kqeF8tAmbihYzrnopKcbWKx»
        «key-·0123456789abcdef0123456789abcdef»
        «dop_v1_·0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef»
        «shpat_·0123456789abcdef0123456789abcdef»
        «dapi·0123456789abcdef0123456789abcdef»
        «gsk_·abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOP»
        «hvs.·CAESIJ1234567890abcdefghijklmnop»
        «AGE-SECRET-KEY-1·QQPQZ6LWSKU2MVE3G6E4U6JZ5P7S8X9Q2W3E4R5T6Y7U8I9O0P»
        https://api.telegram.org/«bot123456789·:AAF0abcdefghijklmnopqrstuvwxyz01234»/getMe
        «AK\u200bIA·IOSFODNN7EXAMPLE»
        """,
    "CREDENTIALS": """
        https://«bob:hunter2»@example.com/x
        postgres://«app:p@ss:word»@db.example.com:5432/main
        redis://«:hunter2»@cache:6379
        https://«0123456789abcdef0123456789»@example.com
        Authorization: Bearer «abc.def-123456xyz»
        authorization: Basic «Ym9iOmh1bnRlcjI=»
        "Authorization": "Token «8f3a9c01d2b4e5f6»"
        Authorization: «8f3a9c01d2b4e5f6»
        -H 'Authorization: Bearer «mF_9.B5f-4.1JqM»'
        with bearer «8f3a9c01d2b4e5f6» as usual
        Cookie: «sid=31d4d96e407aad42; theme=dark»
        Set-Cookie: «id=a3fWa; Secure»
        """,
    "PASSWORD": r"""
        password = «hunter2»
        password=«hunter2»
        password: «hunter2»
        Password: «hunter2».
        PASSWORD=«swordfish»
        password = "«correct horse battery staple»"
        password = '«hunter2»'
        password: str = "«hunter2»"
        {"password": "«hunter2»", "user": "bob"}
        {\"password\": \"«hunter2»\"}
        {"password":"«it's \"me\"»"}
        {&quot;password&quot;: &quot;«hunter2»&quot;}
        config["password"] = "«hunter2»"
        **Password:** «hunter2»
        `password`: `«hunter2»`
        <password>«hunter2»</password>
        DB_PASSWORD=«hunter2» python run.py
        export PGPASSWORD="«hunter2»"
        SMTP_PASS=«hunter2»
        spring.datasource.password=«hunter2»
        pwd=«hunter2»
        pwd: «hunter2»
        pw: «hunter2»
        userPwd = "«hunter2»"
        passwd => '«hunter2»'
        passphrase: «tr0ub4dor&3»
        password_hash = "«$2b$12$R9h/cIPz0gi.URNNX3kh2O»"
        ?user=bob&password=«hunter2»&x=1
        login(password="«hunter2»")
        login(user, password=«hunter2»)
        (password: «hunter2»)
        password=«p,s;s&wd»
        my password is «hunter2»
        my password is «swordfish»
        My password is: «hunter2!»
        the password for the Wi-Fi is «hunter2»
        Her password was "«open sesame»"
        the password "«hunter2»" works
        mysql --password «hunter2» -u root
        mysql --password=«hunter2»
        Passwort: «hunter2»
        contraseña: «hunter2»
        mot de passe : «hunter2»
        пароль: «hunter2»
        密码：«hunter2»
        ｐａｓｓｗｏｒｄ＝«hunter2»
        pass&shy;word: «hunter2»
        my PIN is «1234»
        PIN: «123456»
        CVV: «123»
        your verification code is «463820»
        security code is: «463820»
        pin: «1234»号
        """,
    "SECRET": r"""
        api_key: "«a1b2c3d4e5f6»"
        api_key = «0123456789abcdef0123»
        API-KEY: «Zm9vYmFyMTIz4»
        {"token": "«8f3a9c01d2b4e5f6»"}
        {"access_token":"«2YotnFZFEjr1zCsicMWpAA»","expires_in":3600}
        {\"refreshToken\": \"«tGzv3JOkF0XG5Qx2TlKWIA»\"}
        aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»
        client_secret=«7Fjfp0ZBr1KtDRbnfVdmIw»&x=1
        SECRET_KEY = '«django-insecure-0a1b2c3d4e5f6g7h»'
        AccountKey=«Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsu==»;EndpointSuffix=x
        X-Amz-Signature=«fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024»
        the secret key is «1a7b3d9»
        the token for staging is «8f3a9c01d2b4e5f6»
        --token «8f3a9c01d2b4e5f6»
        token=«dGhpc0lzQVZlcnlMb25nU2VjcmV0»
        """,
}

CASES = [
    pytest.param(kind, line, id=f"{kind}-{number}")
    for kind, lines in EXAMPLES.items()
    for number, line in enumerate(lines.replace("·", "").strip().split("\n"))
]


@pytest.mark.parametrize(("kind", "line"), CASES)
def test_each_example_loses_what_is_marked_and_nothing_else(kind: str, line: str) -> None:
    line = line.strip()
    given = line.replace("«", "").replace("»", "")
    assert RuleRedactor().text(given) == re.sub("«.*?»", f"[REDACTED:{kind}]", line, flags=re.DOTALL)
